"""The difference that the GPU of another machine would make here: the last plans of a query,
planned anew with its costs here and, for the GPU and the way to it, those of that machine."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from penstock.devices.calibration import Calibration, MachineCosts
from penstock.devices.components import (
    DEFAULT_LINES,
    TO_CPU,
    TO_GPU,
    operation_part,
    path_part,
)
from penstock.devices.policies.ours import cheapest_split, split_table, split_time
from penstock.devices.stage_time import Ms, StageSize, stage_size
from penstock.fit.line import Line
from penstock.model.device_plans import (
    BatchToPlan,
    Device,
    ExplainedPlan,
    KnownCost,
    KnownCosts,
    MachineBody,
    OperationKind,
    PipelineBody,
    QueryDevices,
)


class CostsWithGpu:
    """The costs of a query here, and those of a GPU that was measured elsewhere."""

    def __init__(
        self, kinds: tuple[OperationKind, ...], here: KnownCosts, calibration: Calibration
    ) -> None:
        self.kinds = kinds
        self._here = here
        self._gpu_machine = MachineCosts(calibration.machine, calibration)

    def operation(self, index: int, device: Device) -> Line:
        if device == "cpu":
            return _line(self._here.operations[index])
        line = self._gpu_machine.line(operation_part(self.kinds[index], "gpu"))
        return Line(line.fixed, line.slope * self.share(index))

    def is_operation_measured(self, index: int, device: Device) -> bool:
        if device == "cpu":
            return self._here.operations[index].is_measured
        return self._gpu_machine.values(operation_part(self.kinds[index], "gpu")) > 0

    def share(self, index: int) -> float:
        return self._here.shares[index]

    def transfer(self, device: Device) -> Line:
        return self._gpu_machine.line(TO_GPU if device == "gpu" else TO_CPU)


class BatchWithGpu(NamedTuple):
    """A batch planned anew: the operations on the GPU, and its stage in ms in workers with it, in
    workers without it, and by the cheapest way there is without it. `is_bounded`: only some of the
    tasks at a time could have it."""

    moved: frozenset[OperationKind]
    with_gpu_ms: float
    workers_ms: float
    without_ms: float
    is_bounded: bool = False


def device_sentences(calibration: Calibration, devices: QueryDevices | None) -> list[str]:
    """Sentences on what the GPU of a calibrated machine would change here for the last batches:
    operations that it would take, and the time below the shuffle with and without it."""
    machine = calibration.machine
    if machine.gpu is None:
        return [f"{machine} has no GPU either; give a calibration of a machine that has one"]
    if devices is None or devices.costs is None or not devices.operations or not devices.plans:
        return ["no batch with operations that can leave Spark was planned lately"]
    pipeline = PipelineBody(
        operations=devices.operations,
        machines=(MachineBody("here", 1, machine.gpu, gpus=1, count=devices.costs.machines),),
        gpu_workers=devices.costs.gpu_workers,
    )
    batches = [_with_gpu(calibration, pipeline, devices.costs, plan) for plan in devices.plans]
    remark = _bound(devices.costs, batches) + _unmeasured(devices.costs)
    return _sentences(str(machine.gpu), batches, remark)


def _sentences(gpu: str, batches: list[BatchWithGpu], remark: str) -> list[str]:
    count = len(batches)
    moved = Counter(kind for batch in batches for kind in batch.moved)
    means = [
        sum(times) / count
        for times in zip(
            *((b.with_gpu_ms, b.workers_ms, b.without_ms) for b in batches), strict=True
        )
    ]
    with_ms, workers_ms, without_ms = means
    if not moved:
        return [
            (
                f"with a {gpu} here nothing would change: in none of the last {count} batches is "
                f"it cheaper for any operation{remark}"
            )
        ]
    gains = ", ".join(f"{kind} in {times} of {count}" for kind, times in moved.most_common())
    verdict = "would" if with_ms < without_ms else "would not"
    return [
        f"with a {gpu} here it would take: {gains} of the last batches, of those in workers",
        (
            f"below the shuffle a batch would take {with_ms:.3g} ms in workers with it, "
            f"{workers_ms:.3g} ms in workers without it, and takes {without_ms:.3g} ms the "
            f"cheapest way there is: it {verdict} pay{remark}"
        ),
    ]


def _with_gpu(
    calibration: Calibration, pipeline: PipelineBody, here: KnownCosts, plan: ExplainedPlan
) -> BatchWithGpu:
    kinds = tuple(operation.kind for operation in pipeline.operations)
    batch = BatchToPlan(plan.cut, 0.0, plan.bytes_by_task, plan.rows, plan.cores)
    size = stage_size(pipeline, batch)
    factor = _shipped_factor(here, size)

    def time(cost: KnownCost) -> Ms:
        return size.time(_line(cost)).times(1.0 if cost.is_measured else factor)

    costs = CostsWithGpu(kinds, here, calibration)
    table = split_table(costs, size, has_gpu=True, shipped_factor=factor)
    split = cheapest_split(table)
    to_worker_ms = time(here.worker).wall
    workers_ms = to_worker_ms + split_time(table, ["cpu"] * len(kinds)).wall
    through_spark = (time(cost).wall for cost in here.paths.values())
    return BatchWithGpu(
        frozenset(kind for kind, device in zip(kinds, split, strict=True) if device == "gpu"),
        to_worker_ms + split_time(table, split).wall,
        workers_ms,
        min(workers_ms, *through_spark) if here.paths else workers_ms,
        size.is_bounded,
    )


def _shipped_factor(here: KnownCosts, size: StageSize) -> float:
    """The time that the usual path takes here against that by the costs we ship."""
    usual = here.paths.get("panes", here.paths.get("spark"))
    if usual is None or not usual.is_measured:
        return 1.0
    return size.time(_line(usual)).wall / size.time(DEFAULT_LINES[path_part("panes")]).wall


def _bound(here: KnownCosts, batches: list[BatchWithGpu]) -> str:
    """What to say of batches some of whose tasks would use the CPU all the same."""
    if not any(batch.is_bounded for batch in batches):
        return ""
    return f"; with gpuWorkers at {here.gpu_workers} only some tasks at a time could have it"


def _unmeasured(here: KnownCosts) -> str:
    """What to say of costs here that are not measured."""
    parts = (*here.operations, here.worker, *here.paths.values())
    if all(part.is_measured for part in parts):
        return ""
    return "; some of the costs here were not measured yet, and are those that Penstock ships"


def _line(cost: KnownCost) -> Line:
    return Line(cost.fixed_ms, cost.ms_per_mb / 1e6)
