"""The commit suite: what a batch saves when its commit follows behind it.

`cells` says what is compared and `plans` how much of it, `ablation` what neighbours differ in;
`runs` measures, `figures` sums up and `tables` shows.
"""

from __future__ import annotations

from typing import Any

from penstock.testing.nats_servers import nats_program
from penstock_lab.experiment import jetstream
from penstock_lab.experiment.needs import require_port, require_queries
from penstock_lab.experiment.suite import Suite
from penstock_lab.suites.commit import figures, plans, runs, tables
from penstock_lab.suites.commit.cells import REPLICATED, Plan
from penstock_lab.suites.commit.runs import Record


def require(plan: Plan) -> None:
    require_queries({cell.query for group in plan.groups for cell in group.cells})
    require_port()
    if REPLICATED in plan.systems:
        jetstream.require_servers("other systems with --system")


def plan_of(**asked: Any) -> Plan:
    """The plan of a command line, with the systems that this machine can run."""
    return plans.plan_of(**asked, has_log_servers=nats_program() is not None)


def settings(plan: Plan) -> dict[str, Any]:
    """For the result file: the plan, and what of JetStream a reader must know."""
    servers = {"jetstream": jetstream.settings()} if REPLICATED in plan.systems else {}
    return {**plan.settings(), **servers}


SUITE: Suite[Plan, Record] = Suite(
    name="commit",
    plan_of=plan_of,
    steps=lambda plan: plan.steps,
    minutes=lambda plan: plan.minutes,
    runs=runs.runs,
    figures=figures.figures,
    settings=settings,
    in_file=runs.for_file,
    show=tables.show,
    draw=tables.draw,
    require=require,
    is_right=lambda record: record.is_right,
)
