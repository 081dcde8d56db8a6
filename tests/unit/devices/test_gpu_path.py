"""The GPU over the batches of a query, in simulated worlds in which it is lost and comes back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from penstock.devices.components import DEFAULT_LINES
from penstock.devices.gpu_path import LEFT_OUT_BATCHES, GpuPath
from penstock.devices.left_out import PAUSES_MAX
from penstock.devices.planner import DevicePlanner, NoCalibrations
from penstock.devices.query_planning import QueryPlanning
from penstock.fit.line import Line
from penstock.model.device_plans import (
    BatchPlan,
    BatchToPlan,
    FallbackReport,
    OperationReport,
    PipelineBody,
    PlannedOperation,
    PlanReport,
)
from penstock.model.requests import BatchReport
from support.device_worlds import TrueMachine, batch_of, machine_costs, pipeline_of

MB = 1_000_000
LINES = {
    **DEFAULT_LINES,
    "worker": Line(1.0, 0.0),
    "sort@cpu": Line(40.0, 0.0),
    "sort@gpu": Line(0.5, 0.0),
    "path@panes": Line(400.0, 0.0),
    "path@spark": Line(400.0, 0.0),
}
"""A world in which sorting on the GPU is the cheapest by far."""
PIPELINE = pipeline_of("sort", gpu_workers=4)
LOST = FallbackReport("gone", 2, "CUDA error 719")


class LosableWorld:
    """A query that is planned batch by batch, on a machine whose GPU can be lost."""

    def __init__(self, pipeline: PipelineBody = PIPELINE) -> None:
        self.planning = QueryPlanning(pipeline, [machine_costs(LINES)])
        self.truth = TrueMachine(LINES, noise=0.0)
        self.cut = 0

    def batch(self, *, has_gpu: bool) -> BatchPlan:
        """Plan and run the next batch."""
        self.cut += 1
        batch = batch_of(self.cut, MB, MB)
        plan = self.planning.plan(self.planning.pipeline, batch)
        self.planning.learn(self._run(plan, batch, has_gpu=has_gpu))
        return plan

    def _run(self, plan: BatchPlan, batch: BatchToPlan, *, has_gpu: bool) -> BatchReport:
        if has_gpu or not is_on_gpu(plan):
            return self.truth.run(plan, batch)
        on_cpu = tuple(replace(operation, device="cpu") for operation in plan.operations)
        report = self.truth.run(replace(plan, operations=on_cpu), batch)
        assert report.plan is not None
        return replace(report, plan=replace(report.plan, fallbacks=(LOST,)))


def is_on_gpu(plan: BatchPlan) -> bool:
    return any(operation.device == "gpu" for operation in plan.operations)


@pytest.mark.parametrize("policy", ["ours", "ours-columnar"])
def test_a_gpu_that_is_lost_attracts_few_batches_until_it_is_back(policy: str) -> None:
    world = LosableWorld(replace(PIPELINE, policy=policy))
    assert all(is_on_gpu(world.batch(has_gpu=True)) for _ in range(4))
    lost = [world.batch(has_gpu=False) for _ in range(400)]
    tried = [at for at, plan in enumerate(lost) if is_on_gpu(plan)]
    # The first may be a probe of the CPU.
    assert tried[0] <= 1
    assert [later - before for before, later in pairwise(tried)] == [51, 101, 201]
    later = [world.batch(has_gpu=True) for _ in range(450)]
    assert all(is_on_gpu(plan) for plan in later[-30:] if not plan.is_probe)


def test_the_reason_that_a_gpu_is_left_out_stands_in_plan_log_and_explain(
    caplog: pytest.LogCaptureFixture,
) -> None:
    planner = DevicePlanner(NoCalibrations())
    sorted_on_gpu = BatchReport(
        1, visible_ms=9.0, plan=PlanReport("columnar", 9.0, 2, MB, 9, fallbacks=(LOST,))
    )
    pipeline = replace(PIPELINE, paths=("columnar",))
    plan = planner.plan("q", pipeline, batch_of(1, 64 * MB, 64 * MB))
    assert is_on_gpu(plan)
    planner.heard("q", pipeline, [sorted_on_gpu])
    planner.tune("q")
    after = planner.plan("q", pipeline, batch_of(2, 64 * MB, 64 * MB))
    reason = "every task that was planned for it ran on the cpu: a GPU was lost while it was used"
    assert [operation.device for operation in after.operations] == ["cpu"]
    assert reason in after.operations[0].reason
    assert caplog.text.count(f"the gpu is left out for {LEFT_OUT_BATCHES} batches") == 1
    devices = planner.explain("q", 0.0)
    assert devices is not None
    (note,) = [note for note in devices.notes if "left out" in note]
    assert note.startswith(f"the gpu is left out for {LEFT_OUT_BATCHES - 1} batches")


@pytest.mark.parametrize("more", [{"devices": "gpu"}, {"policy": "all-gpu"}])
def test_a_query_that_insists_on_the_gpu_and_a_policy_for_comparison_keep_it(
    more: dict[str, str],
) -> None:
    world = LosableWorld(replace(PIPELINE, **more))
    assert all(is_on_gpu(world.batch(has_gpu=False)) for _ in range(5))
    assert world.planning.gpu_left_out() is None


ON_GPU = BatchPlan("columnar", "a test", (PlannedOperation("sort", "gpu", "a test"),))


def ran(*devices: str, falls_back: bool = False) -> PlanReport:
    steps = tuple(OperationReport(0, device, 1.0) for device in devices)  # type: ignore[arg-type]
    return PlanReport("columnar", operations=steps, fallbacks=(LOST,) if falls_back else ())


def test_a_batch_some_of_whose_tasks_had_the_gpu_leaves_it_in() -> None:
    path = GpuPath()
    path.reported(ON_GPU, ran("cpu", "gpu", falls_back=True), 1)
    path.reported(ON_GPU, ran("cpu"), 2)
    assert path.absence(2) is None


def test_each_failure_in_a_row_doubles_the_time_up_to_a_bound() -> None:
    path, batches, pauses = GpuPath(), 0, []
    for _ in range(7):
        path.reported(ON_GPU, ran("cpu", falls_back=True), batches)
        pauses.append(path.left_out_batches(batches))
        # Another that was planned before the first was known to have failed.
        path.reported(ON_GPU, ran("cpu", falls_back=True), batches)
        assert path.left_out_batches(batches) == pauses[-1]
        batches += pauses[-1]
    assert pauses == [50, 100, 200, 400, 800, 800, 800]
    for _ in range(PAUSES_MAX * LEFT_OUT_BATCHES):
        path.reported(ON_GPU, ran("gpu"), batches)
    path.reported(ON_GPU, ran("cpu", falls_back=True), batches)
    assert path.left_out_batches(batches) == LEFT_OUT_BATCHES
