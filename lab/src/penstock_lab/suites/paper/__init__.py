"""The paper suite: figures under the conditions that two papers state for theirs.

`papers` has those conditions; `cells` says what is compared and `plans` how much of it. `store`
makes the checkpoint store that MiSA's had, `batch_runs` its part on Spark, `graph_runs` Impeller's
without. `batch_figures` and `figures` sum up, `tables` shows.
"""

from __future__ import annotations

from penstock_lab.experiment import jetstream
from penstock_lab.experiment.needs import require_port, require_queries
from penstock_lab.experiment.suite import Suite
from penstock_lab.measure.log_sizes import JETSTREAM
from penstock_lab.suites.paper import figures, plans, runs, tables
from penstock_lab.suites.paper.cells import Plan
from penstock_lab.suites.paper.runs import Record


def require(plan: Plan) -> None:
    if plan.batches is not None:
        require_queries(set(plan.batches.queries))
        require_port()
    if plan.graphs is not None and plan.graphs.protocols.log == JETSTREAM:
        jetstream.require_servers("--log embedded")


SUITE: Suite[Plan, Record] = Suite(
    name="paper",
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
    is_right=runs.is_right,
)
