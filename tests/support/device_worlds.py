"""Machines with known costs on which plans of batches are run: the reports that would come back."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.devices.calibration import (
    CalibratedLine,
    Calibration,
    Machine,
    MachineCosts,
    machine_of,
)
from penstock.devices.components import (
    DEFAULT_LINES,
    TO_CPU,
    TO_GPU,
    WORKER,
    operation_part,
    path_part,
)
from penstock.devices.costs import QueryCosts
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

GPU_MACHINE = MachineBody("cpu x", 8, "gpu y", "13.0", gpus=1, gpu_bytes=64 << 30)
CPU_MACHINE = MachineBody("cpu x", 8)
NOISE = 0.08
OUTLIERS = 0.02


def pipeline_of(*kinds: OperationKind, **more: object) -> PipelineBody:
    """A pipeline of these operations on one machine with a GPU, on every path."""
    fields = {
        "operations": tuple(OperationBody(kind) for kind in kinds),
        "machines": (GPU_MACHINE,),
        "paths": ("spark", "panes", "columnar"),
        **more,
    }
    return PipelineBody(**fields)  # type: ignore[arg-type]


def batch_of(cut: int, *bytes_by_task: int, **more: object) -> BatchToPlan:
    """A batch whose tasks read so many bytes each."""
    rows = sum(bytes_by_task) // 64
    return BatchToPlan(cut, 1_000.0 * cut, bytes_by_task, rows, 4, **more)  # type: ignore[arg-type]


def machine_costs(lines: dict[str, Line], machine: Machine | None = None) -> MachineCosts:
    """A machine that was calibrated to these costs, and to those we ship for other parts."""
    costs = {part: CalibratedLine(line.fixed, line.slope * 1e6, 1) for part, line in lines.items()}
    kind = machine or machine_of(GPU_MACHINE)
    return MachineCosts(kind, Calibration(kind, costs))


@dataclass
class TrueMachine:
    """A machine whose costs a test knows. `shares` are the bytes that go into each operation, and
    that come out of the last, against those of the batch; none: they stay the same."""

    lines: dict[str, Line]
    luck: random.Random = field(default_factory=lambda: random.Random(1))
    noise: float = NOISE
    windows: int = 1
    shares: tuple[float, ...] = ()

    def run(self, plan: BatchPlan, batch: BatchToPlan) -> BatchReport:
        """The report of a batch that was run as planned. Neighbours on the CPU are one step."""
        path = plan.path
        tasks, size = len(batch.bytes_by_task), sum(batch.bytes_by_task)
        if path != "columnar":
            factor = self.windows if path == "spark" else 1
            ms = self._ms(path_part(path), batch, factor)
            report = PlanReport(path, ms, tasks, size, batch.rows)
            return BatchReport(batch.cut, visible_ms=ms / tasks + 100.0, plan=report)
        worker_ms = self._ms(WORKER, batch)
        steps = self._steps(plan, batch)
        devices = ["cpu", *(operation.device for operation in plan.operations), "cpu"]
        moves = list(enumerate(pairwise(devices)))
        to_gpu = [self._share(index) for index, move in moves if move == ("cpu", "gpu")]
        to_cpu = [self._share(index) for index, move in moves if move == ("gpu", "cpu")]
        to_gpu_ms = sum(self._ms(TO_GPU, batch, share) for share in to_gpu)
        to_cpu_ms = sum(self._ms(TO_CPU, batch, share) for share in to_cpu)
        ms = worker_ms + to_gpu_ms + to_cpu_ms + sum(step.ms for step in steps)
        report = PlanReport(
            path,
            ms,
            tasks,
            size,
            batch.rows,
            worker_ms,
            to_gpu_ms,
            round(size * sum(to_gpu)),
            to_cpu_ms,
            round(size * sum(to_cpu)),
            steps,
        )
        return BatchReport(batch.cut, visible_ms=ms / tasks + 100.0, plan=report)

    def inflection_bytes(self, kinds: tuple[OperationKind, ...]) -> float:
        """The size of a task from which on the GPU is cheaper for all operations together."""
        cpu, gpu = self.all_on(kinds, "cpu"), self.all_on(kinds, "gpu")
        return (gpu.fixed - cpu.fixed) / (cpu.slope - gpu.slope)

    def all_on(self, kinds: tuple[OperationKind, ...], device: Device) -> Line:
        """The true cost of all operations on one device against the bytes of a task."""
        parts = [
            (operation_part(kind, device), self._share(index)) for index, kind in enumerate(kinds)
        ]
        if device == "gpu":
            parts += [(TO_GPU, 1.0), (TO_CPU, self._share(len(kinds)))]
        lines = [(self.lines[part], share) for part, share in parts]
        return Line(
            sum(line.fixed for line, _ in lines), sum(line.slope * share for line, share in lines)
        )

    def _share(self, index: int) -> float:
        return self.shares[index] if self.shares else 1.0

    def _steps(self, plan: BatchPlan, batch: BatchToPlan) -> tuple[OperationReport, ...]:
        steps: list[OperationReport] = []
        tasks, size = len(batch.bytes_by_task), sum(batch.bytes_by_task)
        for index, operation in enumerate(plan.operations):
            part = operation_part(operation.kind, operation.device)
            ms = self._ms(part, batch, self._share(index))
            last = steps[-1] if steps else None
            if last is not None and last.device == operation.device == "cpu":
                steps[-1] = OperationReport(
                    last.first, "cpu", last.ms + ms, last.bytes, 0, tasks, last.count + 1
                )
            else:
                taken = round(size * self._share(index))
                steps.append(OperationReport(index, operation.device, ms, taken, 0, tasks))
        return tuple(steps)

    def _ms(self, part: str, batch: BatchToPlan, factor: float = 1.0) -> float:
        line = self.lines[part]
        ms = sum(line.at(size * factor) for size in batch.bytes_by_task)
        ms *= self.luck.lognormvariate(0.0, self.noise) if self.noise else 1.0
        return ms * (5.0 if self.noise and self.luck.random() < OUTLIERS else 1.0)


def true_lines(luck: random.Random, lines: dict[str, Line] = DEFAULT_LINES) -> dict[str, Line]:
    """The costs of some machine: those we ship, or others, each part faster or slower by up to a
    factor 2."""
    return {
        part: Line(line.fixed * luck.uniform(0.5, 2.0), line.slope * luck.uniform(0.5, 2.0))
        for part, line in lines.items()
    }


def costs_of(pipeline: PipelineBody, lines: dict[str, Line]) -> QueryCosts:
    """The costs of a query that begins with these of its machine."""
    return QueryCosts(pipeline, [machine_costs(lines)])
