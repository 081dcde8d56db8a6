"""The columnar suite: what a batch over sliding windows takes on each path that it can take.

Every path is forced in turn, and `auto` is what admission plans for each batch, by what it has
learned on this machine before. All have the same policy and run in one session a repeat, over input
that is written once, so that neither a slow minute of the machine nor another file falls on one of
them only.

`cells` says what is compared, `runs` measures, `figures` sums up, `tables` shows.
"""

from __future__ import annotations

from penstock_lab.experiment.suite import Suite
from penstock_lab.suites.columnar import cells, figures, runs, tables
from penstock_lab.suites.columnar.cells import Plan
from penstock_lab.suites.columnar.runs import Record

SUITE: Suite[Plan, Record] = Suite(
    name="columnar",
    plan_of=cells.plan_of,
    steps=lambda plan: plan.steps,
    minutes=lambda plan: plan.minutes,
    runs=runs.runs,
    figures=figures.figures,
    settings=lambda plan: plan.settings(),
    in_file=lambda record: record,
    show=tables.show,
)
