"""Plans for rows that are in one window each: Spark's own plan is in place of panes."""

from __future__ import annotations

import pytest

from penstock.devices.calibration import machine_of
from penstock.devices.components import DEFAULT_LINES
from penstock.devices.costs import QueryCosts
from penstock.devices.plan import Planning, forced_plan, our_plan, policy_plan
from penstock.devices.query_planning import QueryPlanning
from penstock.fit.line import Line
from penstock.model.device_plans import PipelineBody, PlanReport
from support.device_worlds import (
    CPU_MACHINE,
    TrueMachine,
    batch_of,
    costs_of,
    machine_costs,
    pipeline_of,
)

KB, MB = 1_000, 1_000_000
PATHS = ("spark", "columnar")


def tumbling(**more: object) -> PipelineBody:
    return pipeline_of(
        "project", "aggregate", **{"paths": PATHS, "machines": (CPU_MACHINE,), **more}
    )


def test_batches_go_as_spark_plans_them_until_that_and_another_way_were_measured() -> None:
    """The costs we ship say that a worker is cheaper: nobody has measured that."""
    pipeline, size = tumbling(), 50 * MB
    costs = costs_of(pipeline, {})
    planning = Planning.of(pipeline, batch_of(1, size), costs)
    plan = our_plan(planning, planning.ways(), None)
    assert plan.path == "spark"
    assert plan.reason.startswith("spark before anything is measured: ")
    costs.learn(PlanReport("spark", 10_000.0, 1, size, 9))
    planning = Planning.of(pipeline, batch_of(2, size), costs)
    plan = our_plan(planning, planning.ways(), None)
    assert plan.path == "spark"
    assert plan.reason.startswith("cheapest of those that were measured: ")


def test_what_spark_does_with_rows_in_one_window_costs_what_panes_cost() -> None:
    """Each row is aggregated once; the cost of a row for every window is another one."""
    pipeline = tumbling()
    known = {"path@panes": Line(20.0, 3e-6), "path@spark": Line(1.0, 1e-9)}
    costs = costs_of(pipeline, known)
    assert costs.is_measured("spark")
    assert costs.path("spark").at(MB) == pytest.approx(20.0 + 3.0)
    only_expanded = costs_of(pipeline, {"path@spark": Line(1.0, 1e-9)})
    assert not only_expanded.is_measured("spark")


def test_a_batch_of_one_window_teaches_the_machine_what_panes_cost() -> None:
    machine = machine_costs({}, machine_of(CPU_MACHINE))
    costs = QueryCosts(tumbling(), [machine])
    costs.learn(PlanReport("spark", 40.0, 2, 2 * MB, 9))
    assert (machine.values("path@panes"), machine.values("path@spark")) == (1, 0)


def test_workers_are_probed_and_taken_where_they_turn_out_cheaper() -> None:
    lines = {**DEFAULT_LINES, "worker": Line(1.0, 1e-8), "path@spark": Line(400.0, 1e-5)}
    pipeline = tumbling()
    planning = QueryPlanning(pipeline, [machine_costs({}, machine_of(CPU_MACHINE))])
    truth = TrueMachine(lines, noise=0.0)
    plans = []
    for cut in range(1, 250):
        batch = batch_of(cut, 10 * MB, 10 * MB)
        plans.append(planning.plan(pipeline, batch))
        planning.learn(truth.run(plans[-1], batch))
    assert {plan.path for plan in plans} == set(PATHS)
    assert plans[0].path == "spark"
    assert all(plan.path == "columnar" for plan in plans[-20:] if not plan.is_probe)


def test_a_query_that_asks_for_panes_is_told_that_it_has_none() -> None:
    pipeline = tumbling(devices="panes")
    plan = forced_plan(Planning.of(pipeline, batch_of(1, KB), costs_of(pipeline, {})))
    assert plan.path == "spark"
    assert plan.reason == "devices are set to panes, and rows are in one window: as Spark plans it"


def test_policies_for_comparison_run_on_the_columnar_path_or_as_spark_plans() -> None:
    for paths, path in ((PATHS, "columnar"), (("spark",), "spark")):
        pipeline = tumbling(policy="all-cpu", paths=paths)
        planning = Planning.of(pipeline, batch_of(1, KB), costs_of(pipeline, {}))
        assert policy_plan(planning, 150 * KB).path == path
