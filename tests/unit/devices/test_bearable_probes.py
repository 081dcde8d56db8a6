"""Probes: what a batch must be able to spare for them, and how few stay when machines change."""

from __future__ import annotations

import pytest

from penstock.devices.components import DEFAULT_LINES
from penstock.devices.plan import PROBE_MARGIN, UNTRIED_MARGIN, Planning
from penstock.devices.planner import DevicePlanner, NoCalibrations
from penstock.devices.tuning import PROBE_EVERY
from penstock.fit.line import Line
from penstock.model.device_plans import BatchPlan, MachineBody, PipelineBody, PlanReport
from support.device_worlds import (
    CPU_MACHINE,
    TrueMachine,
    batch_of,
    costs_of,
    pipeline_of,
)

MB = 1_000_000
SLOWER, WINDOWS = 8.0, 12
SLOW_MACHINE = {
    part: Line(SLOWER * line.fixed, SLOWER * line.slope) for part, line in DEFAULT_LINES.items()
}
THROUGH_SPARK = pipeline_of(
    "filter", "aggregate", machines=(CPU_MACHINE,), paths=("spark", "panes"), windows=WINDOWS
)


def plans_of(
    lines: dict[str, Line], pipeline: PipelineBody, spare_ms: float | None, batches: int = 120
) -> list[BatchPlan]:
    """The plans of batches on a machine with these costs, each reported before the next."""
    planner = DevicePlanner(NoCalibrations())
    truth = TrueMachine(lines, noise=0.0, windows=pipeline.windows)
    plans = []
    for cut in range(1, batches + 1):
        batch = batch_of(cut, 2 * MB, 2 * MB, spare_ms=spare_ms)
        plans.append(planner.plan("q", pipeline, batch))
        planner.heard("q", pipeline, [truth.run(plans[-1], batch)])
        planner.tune("q")
    return plans


def test_on_a_slow_machine_what_was_not_measured_is_thought_to_be_slow_too() -> None:
    """In truth panes take 280 ms and Spark 864; by the costs we ship it takes 108."""
    assert not any(plan.is_probe for plan in plans_of(SLOW_MACHINE, THROUGH_SPARK, 150.0))
    probe = next(plan for plan in plans_of(SLOW_MACHINE, THROUGH_SPARK, 2_000.0) if plan.is_probe)
    assert probe.path == "spark"
    assert probe.expected_ms == pytest.approx(2 * 864.0, rel=0.05)


def test_parts_that_were_measured_keep_their_cost_and_others_are_scaled() -> None:
    pipeline = pipeline_of("filter", "sort", windows=WINDOWS)
    batch = batch_of(1, MB)
    by_shipped = Planning.of(pipeline, batch, costs_of(pipeline, {})).ways()
    known = {name: SLOW_MACHINE[name] for name in ("path@panes", "worker", "filter@cpu")}
    costs = costs_of(pipeline, known)
    ways = Planning.of(pipeline, batch, costs).ways()
    for way in ("panes", "spark", "cpu"):
        assert ways[way].time.wall == pytest.approx(SLOWER * by_shipped[way].time.wall, rel=0.01)
    costs.learn(PlanReport("spark", 50.0, 1, MB, 9))
    assert Planning.of(pipeline, batch, costs).ways()["spark"].time.wall == pytest.approx(50.0)


def test_a_probe_that_is_thought_to_be_quicker_needs_a_margin_all_the_same() -> None:
    """By the costs we ship Spark is quicker for one window: 20 ms against 35."""
    pipeline = pipeline_of("filter", machines=(CPU_MACHINE,), paths=("spark", "panes"))
    assert not any(plan.is_probe for plan in plans_of(SLOW_MACHINE, pipeline, 0.0))
    assert not any(plan.is_probe for plan in plans_of(SLOW_MACHINE, pipeline, -1.0))
    assert any(plan.is_probe for plan in plans_of(SLOW_MACHINE, pipeline, 200.0))


def test_the_margin_is_all_of_a_way_until_it_was_measured_and_a_part_of_it_after() -> None:
    costs = costs_of(THROUGH_SPARK, {"path@panes": DEFAULT_LINES["path@panes"]})
    ways = Planning.of(THROUGH_SPARK, batch_of(1, MB), costs).ways()
    assert ways["spark"].margin_ms == pytest.approx(UNTRIED_MARGIN * ways["spark"].time.wall)
    assert ways["panes"].margin_ms == pytest.approx(PROBE_MARGIN * ways["panes"].time.wall)


def test_probes_stay_one_in_fifty_while_kinds_of_machines_come_and_go() -> None:
    planner = DevicePlanner(NoCalibrations())
    truth = TrueMachine(SLOW_MACHINE, noise=0.0, windows=WINDOWS)
    other = MachineBody("cpu y", 4)
    plans = []
    for cut in range(1, 301):
        machines = (CPU_MACHINE,) if cut // 6 % 2 else (CPU_MACHINE, other)
        pipeline = pipeline_of("filter", machines=machines, paths=("spark", "panes"), windows=12)
        batch = batch_of(cut, 2 * MB, 2 * MB)
        plans.append(planner.plan("q", pipeline, batch))
        planner.heard("q", pipeline, [truth.run(plans[-1], batch)])
        planner.tune("q")
    assert 1 <= sum(plan.is_probe for plan in plans) <= 300 / PROBE_EVERY
    # What batches took on either is known on both.
    assert {plan.path for plan in plans[10:] if not plan.is_probe} == {"panes"}
    expected = [plan.expected_ms for plan in plans[-20:] if plan.path == "panes"]
    assert expected == pytest.approx([2 * 280.0] * len(expected), rel=0.05)
    devices = planner.explain("q", 0.0)
    assert devices is not None
    assert devices.batches == 300
