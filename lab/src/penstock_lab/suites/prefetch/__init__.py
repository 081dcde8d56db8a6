"""The prefetch suite: state that is in memory before the row arrives, against caches alone.

`cells` and `plans` say what is compared, `modes` with which settings, `minutes` how long it takes;
`runs` puts the runs in order, in the rooms of `rooms`; `figures` sums up, with `backlog_figures`,
`tables` shows; `adaptation` is the part in which the controller has to move.
"""

from __future__ import annotations

from penstock_lab.experiment.needs import require_campaigns, require_port, require_queries
from penstock_lab.experiment.suite import Suite
from penstock_lab.suites.prefetch import figures, plans, records, runs, tables
from penstock_lab.suites.prefetch.cells import Plan
from penstock_lab.suites.prefetch.minutes import minutes_of
from penstock_lab.suites.prefetch.records import Record


def require(plan: Plan) -> None:
    require_queries(plan.queries)
    if any(workload.is_lookup for workload in plan.workloads):
        require_campaigns(plan.redis)
    require_port()


SUITE: Suite[Plan, Record] = Suite(
    name="prefetch",
    plan_of=plans.plan_of,
    steps=lambda plan: plan.steps,
    minutes=minutes_of,
    runs=runs.runs,
    figures=figures.figures,
    settings=lambda plan: plan.settings(),
    in_file=records.for_file,
    show=tables.show,
    draw=tables.draw,
    require=require,
    is_right=lambda record: record.is_right,
)
