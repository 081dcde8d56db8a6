"""Placement: a pipeline whose steps are on several devices, run in a task, and what it measures.

Neighbours on one device run there as a pipeline of their own; between devices rows are columns in
the memory of the CPU. Where a device cannot be had, its steps run on the CPU and the report has the
cause, unless the pipeline forbids that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import msgspec

from penstock.devices.gpu_kind import GpuKind, gpu_kind
from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import (
    CPU,
    DeviceRefused,
    EventTime,
    EventTimes,
    Execute,
    Fallback,
    Pipeline,
    Report,
    Step,
    execute,
    execution_on,
)
from penstock.errors import BadCall


class OperationRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """An operation of a plan as a task ran it, by its place among those that plans count: a step
    that notes event times is a part of the operation after it."""

    index: int
    device: str
    us: int
    bytes: int = 0
    rows: int = 0


class TaskReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The report of some rows of a task, which the plug-in adds up over tasks. `gpu` is the GPU of
    the machine, where workers can use one; `is_new_worker`: the worker was started for the task."""

    rows: int
    event_times: tuple[EventTimes | None, ...]
    operations: tuple[OperationRun, ...]
    to_gpu_us: int = 0
    to_gpu_bytes: int = 0
    to_cpu_us: int = 0
    to_cpu_bytes: int = 0
    splits: int = 0
    fallbacks: tuple[Fallback, ...] = ()
    gpu: GpuKind | None = None
    is_new_worker: bool = False


class PartRun(NamedTuple):
    """Neighbours on one device, with the report of their run."""

    steps: tuple[Step, ...]
    device: str
    report: Report


def run_placed(pipeline: Pipeline, rows: Rows) -> tuple[Rows, TaskReport]:
    """The rows that a pipeline makes of these, each step on its device, and the report."""
    taken = rows.count
    runs: list[PartRun] = []
    for part in placed_parts(pipeline):
        rows, report = _run(part, rows)
        # With a fallback it ran on the CPU, wherever it was to.
        device = CPU if report.fallbacks else part.device
        runs.append(PartRun(part.steps, device, report))
    return rows, task_report(taken, runs)


def placed_parts(pipeline: Pipeline) -> list[Pipeline]:
    """The runs of neighbours on one device, each as a pipeline that knows whether others follow."""
    devices = pipeline.devices or (pipeline.device,) * len(pipeline.steps)
    placed = zip(pipeline.steps, devices, strict=True)
    parts = [
        (tuple(step for step, _ in neighbours), device)
        for device, neighbours in groupby(placed, key=itemgetter(1))
    ]
    return [
        msgspec.structs.replace(
            pipeline, steps=steps, device=device, devices=(), is_followed=number < len(parts)
        )
        for number, (steps, device) in enumerate(parts, 1)
    ]


def _run(part: Pipeline, rows: Rows) -> tuple[Rows, Report]:
    """The rows after neighbours on one device; on the CPU, and said so, where it cannot be had."""
    try:
        return _execution(part)(part, rows)
    except DeviceRefused as refusal:
        if part.must_not_fall_back:
            raise BadCall(
                f"the {part.device} is insisted on (spark.penstock.devices) and a task cannot have "
                f"it: {refusal.text}; set it to auto, panes or cpu",
                code="no_device",
            ) from refusal
        rows, report = execute(part, rows)
        fallback = Fallback(refusal.cause, refusal.text[:300])
        return rows, msgspec.structs.replace(report, fallbacks=(fallback,))


def _execution(part: Pipeline) -> Execute:
    """The execution on the device of a part; refused as absent where this build has none."""
    try:
        return execution_on(part.device)
    except BadCall as error:
        if part.must_not_fall_back:
            raise
        raise DeviceRefused("absent", error.message) from error


def task_report(taken: int, runs: Sequence[PartRun]) -> TaskReport:
    """The report of a whole pipeline from those of its parts."""
    reports = [run.report for run in runs]
    return TaskReport(
        taken,
        tuple(times for report in reports for times in report.event_times),
        tuple(_operations(runs)),
        sum(report.to_gpu_us for report in reports),
        sum(report.to_gpu_bytes for report in reports),
        sum(report.to_cpu_us for report in reports),
        sum(report.to_cpu_bytes for report in reports),
        sum(report.splits for report in reports),
        tuple(fallback for report in reports for fallback in report.fallbacks),
        gpu_kind(),
    )


def _operations(runs: Sequence[PartRun]) -> Iterator[OperationRun]:
    """The operations of all parts in order."""
    index = noted_us = 0
    for run in runs:
        for place, step in enumerate(run.steps):
            us = run.report.step_us[place] + noted_us
            if isinstance(step, EventTime):
                noted_us = us
                continue
            sizes = _at(run.report.step_bytes, place), _at(run.report.step_rows, place)
            devices = run.report.step_devices or (run.device,) * len(run.steps)
            yield OperationRun(index, devices[place], us, *sizes)
            index, noted_us = index + 1, 0


def _at(numbers: Sequence[int], place: int) -> int:
    """A number of a step; 0 where a device does not tell it."""
    return numbers[place] if place < len(numbers) else 0
