"""The bounded suite: latency over many minutes, a fixed trigger of 10 s against two policies.

As figures 8 and 9 of the LMStream paper: the longest latency of each batch, and its rows, over
time. Then past the rate that the fixed trigger sustains: its latency grows, and does ours?

`cells` says what is compared, `runs` measures, `figures` sums up, `tables` shows.
"""

from __future__ import annotations

import msgspec

from penstock_lab.experiment.needs import require_port, require_queries
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.systems import ALL_PROGRESS
from penstock_lab.suites.bounded import cells, figures, runs, tables
from penstock_lab.suites.bounded.cells import Plan
from penstock_lab.suites.bounded.runs import Record


def require(plan: Plan) -> None:
    require_queries({cell.query for cell in plan.cells})
    require_port()


SUITE: Suite[Plan, Record] = Suite(
    name="bounded",
    plan_of=cells.plan_of,
    steps=lambda plan: plan.steps,
    minutes=lambda plan: plan.minutes,
    runs=runs.runs,
    figures=figures.figures,
    settings=lambda plan: {**msgspec.to_builtins(plan), "spark": ALL_PROGRESS},
    in_file=runs.for_file,
    show=tables.show,
    draw=tables.draw,
    require=require,
    is_right=lambda record: record.is_right,
)
