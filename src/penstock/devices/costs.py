"""Costs of one query: what its operations, transfers and paths take, and how bytes shrink on the
way. They begin with those of the machine and follow what its batches measure."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.devices.calibration import MachineCosts
from penstock.devices.components import (
    DEFAULT_LINES,
    OUTPUT_SHARE,
    TO_CPU,
    TO_GPU,
    WORKER,
    operation_part,
    path_part,
)
from penstock.devices.stage_time import StageSize
from penstock.fit.learned_line import LearnedLine
from penstock.fit.line import Line
from penstock.fit.quantile import RecentValues
from penstock.model.device_plans import (
    Device,
    OperationReport,
    PathName,
    PipelineBody,
    PlanReport,
)

REFERENCE_BYTES = 256 << 10
"""The size at which the slowest of several kinds of machines is looked for."""
SHARES_KEPT = 16


class QueryCosts:
    """Costs of the parts of one pipeline for one task. Where its batches run on several kinds of
    machines, each part begins with its cost on the slowest: a stage ends with its last task."""

    def __init__(self, pipeline: PipelineBody, machines: Sequence[MachineCosts]) -> None:
        self.kinds = tuple(operation.kind for operation in pipeline.operations)
        self.windows = pipeline.windows
        self._has_panes = "panes" in pipeline.paths
        self._machines = tuple(machines)
        self._lines: dict[str, LearnedLine] = {}
        self._shares = [RecentValues(SHARES_KEPT) for _ in range(len(self.kinds) + 1)]

    def moved_to(self, machines: Sequence[MachineCosts]) -> None:
        """Go on with other kinds of machines. What batches of the query have measured stays; other
        parts begin with the costs there."""
        self._machines = tuple(machines)
        self._lines = {name: learned for name, learned in self._lines.items() if learned.values}

    # Costs as they are known now

    def operation(self, index: int, device: Device) -> Line:
        """The cost of an operation for each byte of the pipeline's input, not of its own: how rows
        shrink before it is a part of what is learned."""
        return self._operation(index, device).line

    def transfer(self, device: Device) -> Line:
        """The cost of moving bytes to a device."""
        part = TO_GPU if device == "gpu" else TO_CPU
        return self._learned(part).line

    def worker(self) -> Line:
        return self._learned(WORKER).line

    def path(self, path: PathName) -> Line:
        """The cost of a path through Spark for each byte of input."""
        line = self._learned(self._path_part(path)).line
        return Line(line.fixed, line.slope * self._bytes_factor(path))

    def is_measured(self, path: PathName) -> bool:
        """Whether any batch, of this query or of another on its machines, took a path."""
        part = WORKER if path == "columnar" else self._path_part(path)
        return bool(self._learned(part).values) or any(
            machine.values(part) for machine in self._machines
        )

    def shipped_factor(self, size: StageSize) -> float:
        """The time that panes, or what Spark does in their stead, take for a stage against what
        they would by the costs we ship: the best guess for all that was not measured. 1 before they
        were."""
        if not self.is_measured("panes"):
            return 1.0
        shipped = size.time(DEFAULT_LINES[path_part("panes")])
        return size.time(self.path("panes")).wall / shipped.wall

    def is_operation_measured(self, index: int, device: Device) -> bool:
        """Whether any batch, of this query or of another on its machines, ran such an operation on
        a device."""
        part = operation_part(self.kinds[index], device)
        return bool(self._operation(index, device).values) or any(
            machine.values(part) for machine in self._machines
        )

    def share(self, index: int) -> float:
        """The bytes that go into an operation against those of the batch; at the end, those that
        come out of the last one."""
        measured = self._shares[index]
        if len(measured):
            return measured.quantile(0.5)
        if index == 0:
            return 1.0
        return self.share(index - 1) * OUTPUT_SHARE.get(self.kinds[index - 1], 1.0)

    def line_on(self, device: Device) -> Line:
        """The cost of all operations on one device, transfers included, against input bytes."""
        fixed = slope = 0.0
        for index in range(len(self.kinds)):
            line = self.operation(index, device)
            fixed, slope = fixed + line.fixed, slope + line.slope
        if device == "gpu":
            for line, share in (
                (self.transfer("gpu"), self.share(0)),
                (self.transfer("cpu"), self.share(len(self.kinds))),
            ):
                fixed, slope = fixed + line.fixed, slope + line.slope * share
        return Line(fixed, slope)

    # Reports

    def learn(self, report: PlanReport) -> None:
        """Take in what a finished batch measured of its plan."""
        if not report.tasks:
            return
        input_bytes = report.bytes / report.tasks
        if report.path != "columnar":
            size = input_bytes * self._bytes_factor(report.path)
            part = self._path_part(report.path)
            self._add(part, size, report.stage_ms / report.tasks)
            return
        self._add(WORKER, input_bytes, report.worker_ms / report.tasks)
        to_gpu, to_cpu = _transfers(report.operations)
        for part, size, ms, count in (
            (TO_GPU, report.to_gpu_bytes, report.to_gpu_ms, to_gpu),
            (TO_CPU, report.to_cpu_bytes, report.to_cpu_ms, to_cpu),
        ):
            if ms and count:
                self._add(part, size / count, ms / count)
        if report.to_gpu_bytes and all(each.device == "gpu" for each in report.operations):
            self._shares[-1].add(report.to_cpu_bytes / report.to_gpu_bytes)
        for each in report.operations:
            self._learn_step(each, input_bytes)

    def _learn_step(self, step: OperationReport, input_bytes: float) -> None:
        """Divide a step over its operations, by what is expected of each."""
        last = step.first + step.count
        if last > len(self.kinds):
            return
        step_bytes = step.bytes / step.tasks
        if input_bytes and step.bytes:
            self._shares[step.first].add(step_bytes / input_bytes)
        indexes = range(step.first, last)
        expected = [self.operation(index, step.device).at(input_bytes) for index in indexes]
        for index, expected_ms in zip(indexes, expected, strict=True):
            ms = step.ms / step.tasks * expected_ms / sum(expected)
            self._operation(index, step.device).add(input_bytes, ms)
            size = input_bytes * self.share(index)
            self._tell_machine(operation_part(self.kinds[index], step.device), size, ms)

    def _add(self, part: str, size: float, ms: float) -> None:
        self._learned(part).add(size, ms)
        self._tell_machine(part, size, ms)

    def _tell_machine(self, part: str, size: float, ms: float) -> None:
        # Of several kinds of machines nobody says which one a task ran on.
        if len(self._machines) == 1:
            self._machines[0].learn(part, size, ms)

    def _operation(self, index: int, device: Device) -> LearnedLine:
        part = operation_part(self.kinds[index], device)
        name = f"{index}:{part}"
        learned = self._lines.get(name)
        if learned is None:
            line = self._slowest(part)
            prior = Line(line.fixed, line.slope * self.share(index))
            learned = self._lines[name] = LearnedLine(prior)
        return learned

    def _learned(self, part: str) -> LearnedLine:
        learned = self._lines.get(part)
        if learned is None:
            learned = self._lines[part] = LearnedLine(self._slowest(part))
        return learned

    def _slowest(self, part: str) -> Line:
        lines = (machine.line(part) for machine in self._machines)
        return max(lines, key=lambda line: line.at(REFERENCE_BYTES))

    def _path_part(self, path: PathName) -> str:
        """The cost of a path through Spark. Where windows do not overlap, Spark's own plan is what
        panes are elsewhere: every row is aggregated once, and no copy is made."""
        is_once = path == "spark" and self.windows == 1 and not self._has_panes
        return path_part("panes" if is_once else path)

    def _bytes_factor(self, path: PathName) -> int:
        return self.windows if path == "spark" else 1


def inflection_bytes(cpu: Line, gpu: Line) -> float | None:
    """The size of a task from which on the GPU is cheaper; None if it never is."""
    if gpu.slope >= cpu.slope:
        return None
    return max((gpu.fixed - cpu.fixed) / (cpu.slope - gpu.slope), 0.0)


def _transfers(steps: Sequence[OperationReport]) -> tuple[int, int]:
    """How often tasks moved their rows to a GPU, and back from it: they begin and end on the CPU.

    Of operations that ran on both, because some tasks fell back, those on the GPU count.
    """
    on_gpu = {step.first: step.tasks for step in steps if step.device == "gpu"}
    to_gpu = to_cpu = before = 0
    for first in sorted({step.first for step in steps}):
        tasks = on_gpu.get(first, 0)
        to_gpu += max(tasks - before, 0)
        to_cpu += max(before - tasks, 0)
        before = tasks
    return to_gpu, to_cpu + before
