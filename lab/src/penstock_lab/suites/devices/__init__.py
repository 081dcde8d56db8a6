"""The devices suite: operations on CPU and GPU, and the LMStream paper's workloads with both.

`workloads` and `cells` say what is compared, `modes` with which settings, `plans` how much of it;
`runs` puts the runs in order, `records` keeps them so that results of several commands can be
merged; `machine_figures`, `figures` and `headlines` sum up, `tables` shows.
"""

from __future__ import annotations

from penstock_lab.experiment.needs import require_port, require_queries
from penstock_lab.experiment.suite import Suite
from penstock_lab.suites.devices import figures, plans, records, runs, tables
from penstock_lab.suites.devices.cells import ON_SPARK
from penstock_lab.suites.devices.plans import Asked
from penstock_lab.suites.devices.records import Record, SparkRecord
from penstock_lab.suites.devices.workloads import WORKLOADS


def require(asked: Asked) -> None:
    plan = asked.plan
    if plan.skipped is None and any(part in plan.parts for part in ON_SPARK):
        require_queries({WORKLOADS[name].query for name in plan.workloads})
        require_port()


SUITE: Suite[Asked, Record] = Suite(
    name=records.SUITE_NAME,
    plan_of=plans.asked_of,
    steps=lambda asked: asked.plan.steps,
    minutes=lambda asked: asked.plan.minutes,
    runs=runs.runs,
    figures=lambda asked, made: figures.figures(asked.plan, made),
    settings=lambda asked: {**asked.plan.settings(), "notes": asked.notes},
    in_file=records.for_file,
    show=tables.show,
    require=require,
    is_right=lambda record: not isinstance(record, SparkRecord) or record.is_right,
    is_shown=lambda asked, made: bool(made or asked.plan.skipped),
)
