"""The commit suite: what a batch saves when its commit follows behind it.

`cells` says what is compared and `plans` how much of it, `runs` measures, `figures` sums up and
`tables` shows.
"""

from __future__ import annotations

from penstock_lab.experiment.needs import require_port, require_queries
from penstock_lab.experiment.suite import Suite
from penstock_lab.suites.commit import figures, plans, runs, tables
from penstock_lab.suites.commit.cells import Plan
from penstock_lab.suites.commit.runs import Record


def require(plan: Plan) -> None:
    require_queries({cell.query for group in plan.groups for cell in group.cells})
    require_port()


SUITE: Suite[Plan, Record] = Suite(
    name="commit",
    plan_of=plans.plan_of,
    steps=lambda plan: plan.steps,
    minutes=lambda plan: plan.minutes,
    runs=runs.runs,
    figures=figures.figures,
    settings=lambda plan: plan.settings(),
    in_file=runs.for_file,
    show=tables.show,
    draw=tables.draw,
    require=require,
    is_right=lambda record: record.is_right,
)
