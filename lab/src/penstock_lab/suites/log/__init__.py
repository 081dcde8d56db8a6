"""The log suite: embedded and in JetStream, append, deliver, read by tag, start, recover.

`cells` says what is measured, `runs` measures, `figures` sums up, `tables` shows; `gateway` has the
figures and the table of appends over HTTP.
"""

from __future__ import annotations

from penstock_lab.experiment import jetstream
from penstock_lab.experiment.suite import Suite
from penstock_lab.measure.log_sizes import JETSTREAM
from penstock_lab.suites.log import cells, figures, runs, tables
from penstock_lab.suites.log.cells import Plan
from penstock_lab.suites.log.runs import Record


def require(plan: Plan) -> None:
    if JETSTREAM in plan.backends:
        jetstream.require_servers("--backend embedded")


SUITE: Suite[Plan, Record] = Suite(
    name="log",
    plan_of=cells.plan_of,
    steps=lambda plan: plan.steps,
    runs=runs.runs,
    figures=figures.figures,
    settings=cells.settings,
    in_file=lambda record: record,
    show=tables.show,
    draw=tables.draw,
    require=require,
)
