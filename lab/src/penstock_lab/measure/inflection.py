"""Inflection points of an operation: where the GPU becomes cheaper, as measured and as learned.

The point that is measured is where the medians of both devices cross, transfers included, of runs
as batches have them, if they part there clearly enough for a point to be found. A planner then
begins with costs by which the point is far off, and learns from operations that are really run, on
the device that it chose for each of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from penstock.devices.calibration import (
    CalibratedLine,
    Calibration,
    MachineCosts,
    machine_of,
)
from penstock.devices.components import TO_CPU, TO_GPU, operation_part
from penstock.devices.explain import pipeline_inflection
from penstock.devices.query_planning import QueryPlanning
from penstock.devices.tuning import PaperTuning
from penstock.fit.line import Line
from penstock.model.device_plans import (
    BatchPlan,
    BatchToPlan,
    Device,
    MachineBody,
    OperationBody,
    OperationKind,
    OperationReport,
    PipelineBody,
    PlanReport,
)
from penstock.model.requests import BatchReport

FACTORS = (10.0, 0.1)
"""How far off the inflection point is at first: too high, too low."""
WORKER_MS, AROUND_MS = 25.0, 100.0
"""The way to a worker, and what else a batch takes: nothing that devices change."""
SPREADS = (0.4, 1.0)
CENTRES = (0.5, 2.0)
AROUND = tuple(2.0 ** (step / 2) for step in range(-4, 5))
"""Sizes that are measured as batches run, against the point where repeated runs cross."""
ALIKE, BLUR_MAX = 1.1, 1.5
"""Devices whose times are within a factor are alike: medians are hardly better than that. A point
is clear if they part within another factor of it on both sides, the goal of learning it."""
MACHINE = MachineBody("this machine", 1, "its GPU", "", gpus=1)
FIXED_MS_MIN, SLOPE_MIN = 1e-3, 1e-10
PlannedBy: TypeAlias = Literal["ours", "lmstream"]


class OperationRun(msgspec.Struct, frozen=True):
    """One execution of an operation; transfers are zero on the CPU."""

    bytes: int
    """Of its input."""
    ms: float
    to_gpu_ms: float = 0.0
    to_gpu_bytes: int = 0
    to_cpu_ms: float = 0.0
    to_cpu_bytes: int = 0

    @property
    def total_ms(self) -> float:
        return self.ms + self.to_gpu_ms + self.to_cpu_ms


Execute: TypeAlias = Callable[[Device, int], OperationRun]
"""Runs the operation once on a device, over about so many bytes."""


class LearnedPoint(msgspec.Struct, frozen=True):
    """An inflection point that a policy has arrived at."""

    policy: PlannedBy
    factor: float
    """How far off it was at first."""
    found_bytes: float | None
    batches: int
    probes: int


class FittedCosts(msgspec.Struct, frozen=True):
    """Costs of an operation by part, as lines over the bytes that go in."""

    cpu: Line
    gpu: Line
    to_gpu: Line
    to_cpu: Line

    @property
    def parts_on_gpu(self) -> tuple[Line, Line, Line]:
        return self.gpu, self.to_gpu, self.to_cpu


def off_by(learned_bytes: float | None, truth: float) -> float:
    """The factor between two points; infinite if there is none."""
    return max(learned_bytes / truth, truth / learned_bytes) if learned_bytes else math.inf


def crossing(cpu_ms: Mapping[int, float], gpu_ms: Mapping[int, float]) -> float | None:
    """The size from which on the GPU stays cheaper, between two sizes by their ratios; None if it
    is so at every size, or not at the largest."""
    sizes = sorted(cpu_ms.keys() & gpu_ms.keys())
    logs = [math.log(gpu_ms[size] / cpu_ms[size]) for size in sizes]
    last = max((place for place, log in enumerate(logs) if log >= 0), default=None)
    if last is None or last == len(sizes) - 1:
        return None
    share = logs[last] / (logs[last] - logs[last + 1])
    return float(sizes[last] * (sizes[last + 1] / sizes[last]) ** share)


def sizes_around(point: float) -> tuple[int, ...]:
    """Sizes from a quarter of a point to four times as much."""
    return tuple(max(round(point * factor), 1) for factor in AROUND)


def unclear(
    cpu_ms: Mapping[int, float], gpu_ms: Mapping[int, float], point: float | None
) -> str | None:
    """A sentence if devices do not cross within the sizes, or do not part around the point: it is
    then wherever noise has it, and nothing that could be learned."""
    span = f"{min(cpu_ms):,} to {max(cpu_ms):,} bytes"
    if point is None:
        return f"repeated runs cross, runs over new rows do not from {span}"
    edges = [
        crossing(cpu_ms, {size: ms * factor for size, ms in gpu_ms.items()})
        for factor in (1 / ALIKE, ALIKE)
    ]
    if all(off_by(edge, point) <= BLUR_MAX for edge in edges):
        return None
    below, above = ("beyond" if edge is None else f"{edge:,.0f}" for edge in edges)
    return (
        f"no clear point within {span}: devices are within {ALIKE - 1:.0%} of each other from "
        f"{below} to {above} bytes, and cross at {point:,.0f}"
    )


def relative_fit(values: Sequence[tuple[float, float]]) -> Line:
    """The line of the least relative errors through sizes and times; no part of it is negative."""
    weighed = [(1.0 / ms, size / ms) for size, ms in values if ms > 0]
    xx, xy, yy = (
        sum(x * x for x, _ in weighed),
        sum(x * y for x, y in weighed),
        sum(y * y for _, y in weighed),
    )
    right_x, right_y = sum(x for x, _ in weighed), sum(y for _, y in weighed)
    determinant = xx * yy - xy * xy
    if not weighed or determinant <= 0:
        return Line(FIXED_MS_MIN, SLOPE_MIN)
    fixed = (right_x * yy - right_y * xy) / determinant
    slope = (right_y * xx - right_x * xy) / determinant
    if fixed < FIXED_MS_MIN:
        fixed, slope = FIXED_MS_MIN, right_y / yy
    return Line(fixed, max(slope, SLOPE_MIN))


def fitted_costs(cpu: Sequence[OperationRun], gpu: Sequence[OperationRun]) -> FittedCosts:
    """The costs that runs over many sizes had."""
    return FittedCosts(
        relative_fit([(run.bytes, run.ms) for run in cpu]),
        relative_fit([(run.bytes, run.ms) for run in gpu]),
        relative_fit([(run.bytes, run.to_gpu_ms) for run in gpu]),
        relative_fit([(run.bytes, run.to_cpu_ms) for run in gpu]),
    )


def wrong_costs(
    kind: OperationKind, costs: FittedCosts, truth: float, factor: float
) -> MachineCosts | None:
    """Costs by which the inflection point is off by a factor: those that are fixed on the GPU are
    what is wrong. None where a byte costs no less there."""
    gain = costs.cpu.slope - sum(line.slope for line in costs.parts_on_gpu)
    if gain <= 0:
        return None
    wanted = costs.cpu.fixed + factor * truth * gain
    scale = wanted / sum(line.fixed for line in costs.parts_on_gpu)
    lines = {operation_part(kind, "cpu"): costs.cpu}
    names = (operation_part(kind, "gpu"), TO_GPU, TO_CPU)
    for name, line in zip(names, costs.parts_on_gpu, strict=True):
        lines[name] = Line(line.fixed * scale, line.slope)
    machine = machine_of(MACHINE)
    calibrated = {
        part: CalibratedLine(line.fixed, line.slope * 1e6, 1) for part, line in lines.items()
    }
    return MachineCosts(machine, Calibration(machine, calibrated))


def learned_point(
    kind: OperationKind,
    policy: PlannedBy,
    factor: float,
    costs: FittedCosts,
    truth: float,
    execute: Execute,
    batches: int,
    seed: int = 7,
) -> LearnedPoint | None:
    """The point that a policy arrives at from a wrong start, over batches of random sizes around
    the true one; None where no start can be that wrong."""
    machine = wrong_costs(kind, costs, truth, factor)
    if machine is None:
        return None
    pipeline = PipelineBody(
        (OperationBody(kind),), (MACHINE,), ("columnar",), policy=policy, gpu_workers=1
    )
    planning = QueryPlanning(pipeline, [machine])
    planning.tuning = PaperTuning(truth * factor)
    luck = random.Random(seed)
    centre, spread = truth * luck.uniform(*CENTRES), luck.uniform(*SPREADS)
    for cut in range(1, batches + 1):
        size = max(round(centre * luck.lognormvariate(0.0, spread)), 1)
        batch = BatchToPlan(cut, 1_000.0 * cut, (size,), 1, 1)
        plan = planning.plan(pipeline, batch)
        planning.learn(_report(plan, batch, execute(plan.operations[0].device, size)))
    learned_bytes = (
        pipeline_inflection(planning.costs)
        if policy == "ours"
        else planning.tuning.inflection_bytes
    )
    return LearnedPoint(policy, factor, learned_bytes, batches, planning.probing.probes)


def _report(plan: BatchPlan, batch: BatchToPlan, run: OperationRun) -> BatchReport:
    step = OperationReport(0, plan.operations[0].device, run.ms, run.bytes)
    stage_ms = WORKER_MS + run.total_ms
    report = PlanReport(
        "columnar",
        stage_ms,
        1,
        run.bytes,
        batch.rows,
        WORKER_MS,
        run.to_gpu_ms,
        run.to_gpu_bytes,
        run.to_cpu_ms,
        run.to_cpu_bytes,
        (step,),
    )
    return BatchReport(batch.cut, visible_ms=stage_ms + AROUND_MS, plan=report)
