"""The deadlines suite: three queries at once on two cores, with deadlines and without.

`modes`, `cells` and `rates` say what is compared, `plans` how much of it; `runs` puts the runs in
order, `seats` makes one of them and `shocks` those with a shock; `figures` sums up, with
`baseline_figures` and `shock_figures`; `profile` tells where batch time goes; `tables` shows.
"""

from __future__ import annotations

from penstock_lab.experiment.needs import require_port, require_queries
from penstock_lab.experiment.suite import Suite
from penstock_lab.suites.deadlines import figures, plans, profile, record, runs, tables
from penstock_lab.suites.deadlines.cells import Plan
from penstock_lab.suites.deadlines.record import Record


def require(plan: Plan) -> None:
    require_queries(plan.queries)
    require_port()


SUITE: Suite[Plan, Record] = Suite(
    name="deadlines",
    plan_of=plans.plan_of,
    steps=lambda plan: plan.steps,
    minutes=lambda plan: plan.minutes,
    runs=runs.runs,
    figures=figures.figures,
    settings=lambda plan: plan.settings(),
    in_file=record.for_file,
    profile=profile.for_file,
    show=tables.show,
    draw=tables.draw,
    require=require,
    is_right=lambda record: record.is_right,
)
