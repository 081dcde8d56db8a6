"""The protocols suite: the cost of a commit at short intervals, on task graphs without Spark.

`cells` says what is compared, `runs` measures, `figures` sums up, `tables` shows.
"""

from __future__ import annotations

from penstock_lab.experiment import jetstream
from penstock_lab.experiment.suite import Suite
from penstock_lab.measure.log_sizes import JETSTREAM
from penstock_lab.suites.protocols import cells, figures, runs, tables
from penstock_lab.suites.protocols.cells import Plan
from penstock_lab.suites.protocols.runs import Record


def require(plan: Plan) -> None:
    if plan.log == JETSTREAM:
        jetstream.require_servers("--log embedded")


SUITE: Suite[Plan, Record] = Suite(
    name="protocols",
    plan_of=cells.plan_of,
    steps=lambda plan: plan.steps,
    minutes=lambda plan: plan.minutes,
    runs=runs.runs,
    figures=figures.figures,
    settings=cells.settings,
    in_file=runs.for_file,
    show=tables.show,
    draw=tables.draw,
    require=require,
    is_right=lambda record: record.is_right,
)
