"""The floor suite: what the log adds to the least a stateful micro-batch can cost, where its time
goes, and what each mechanism takes off it.

Systems take turns, each run in a process and folders of its own, so that neither a slow minute of
the machine nor what another left in memory falls on one of them only. Runs with every mechanism and
with all but one share a process where settings of the query are all that differ.

`cells` says what is run and `minutes` how long that takes, `runs` measures, `figures` sums up,
`tables` shows.
"""

from __future__ import annotations

from penstock_lab.experiment.suite import Suite
from penstock_lab.suites.floor import cells, figures, minutes, runs, tables
from penstock_lab.suites.floor.cells import Size
from penstock_lab.suites.floor.runs import Record

SUITE: Suite[Size, Record] = Suite(
    name="floor",
    plan_of=cells.plan_of,
    steps=lambda size: size.steps,
    minutes=minutes.minutes_of,
    runs=runs.runs,
    figures=figures.figures,
    settings=cells.settings,
    in_file=lambda record: record,
    show=tables.show,
)
