"""The recovery suite: kill -9 of driver, executor and server, to the first new marker.

Ours with snapshots of the state in the checkpoint location, and in the log too; beside it
batches and commits of Spark's own over the same log, so that both are timed by the same markers.

`cells` says what is killed under which system, `runs` does it, `figures` sums up, `tables` shows.
"""

from __future__ import annotations

import msgspec

from penstock_lab.experiment.needs import require_port, require_queries
from penstock_lab.experiment.suite import Suite
from penstock_lab.measure.recoveries import Recovered
from penstock_lab.suites.recovery import cells, figures, runs, tables
from penstock_lab.suites.recovery.cells import QUERY, Plan


def require(plan: Plan) -> None:
    require_queries({QUERY})
    require_port()


SUITE: Suite[Plan, Recovered] = Suite(
    name="recovery",
    plan_of=cells.plan_of,
    steps=lambda plan: plan.steps,
    minutes=lambda plan: plan.minutes,
    runs=runs.runs,
    figures=figures.figures,
    settings=cells.settings,
    in_file=lambda record: dict(msgspec.to_builtins(record)),
    show=tables.show,
    require=require,
    is_right=lambda record: record.is_right,
)
