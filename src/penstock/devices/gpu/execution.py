"""Execution of pipelines on a GPU: what it refuses runs on the CPU, what does not fit is split."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import NamedTuple, Protocol

import msgspec
import pyarrow as pa

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.devices.gpu.backend import Backend
from penstock.devices.gpu.losses import cause_of
from penstock.devices.gpu.refusals import refusals
from penstock.devices.gpu.steps import DeviceRun, run_steps
from penstock.devices.gpu.worker_gpu import HERE
from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import (
    CPU,
    DeviceRefused,
    EventTimes,
    Grouped,
    Pipeline,
    Report,
    Sorted,
    Step,
    after,
)
from penstock.devices.pipeline import execute as execute_on_cpu
from penstock.errors import BadCall

GPU = "gpu"
PART_ROWS_MIN = 4_096
"""Rows that are not split any further."""


class Gpu(Protocol):
    """A GPU that can be had for a while."""

    def used(self, workers: int) -> AbstractContextManager[Backend]: ...


class _Part(NamedTuple):
    """Steps that ran on a device, over all rows or some of them."""

    rows: Rows
    run: DeviceRun
    parts: int = 1


def execute(
    pipeline: Pipeline, rows: Rows, clock: Clock = SYSTEM_CLOCK, gpu: Gpu = HERE
) -> tuple[Rows, Report]:
    """The rows that a pipeline makes of these, and its report; DeviceRefused if the GPU cannot be
    had, or not all of it fits even in parts. BadCall if it is insisted on and refuses a step."""
    refused = refusals(pipeline, [column.type for column in rows.columns])
    if pipeline.must_not_fall_back:
        _check_all_taken(pipeline.steps, refused)
    if all(sentence is not None for sentence in refused):
        result, report = execute_on_cpu(pipeline, rows, clock)
        return result, _with_devices(report, [CPU] * len(refused))
    with gpu.used(pipeline.gpu_workers) as backend:
        taken = rows.count
        reports: list[Report] = []
        devices: list[str] = []
        placed = list(zip(pipeline.steps, refused, strict=True))
        for is_refused, neighbours in groupby(placed, key=lambda pair: pair[1] is not None):
            steps = tuple(step for step, _ in neighbours)
            devices += [CPU if is_refused else GPU] * len(steps)
            if is_refused:
                rows, report = execute_on_cpu(Pipeline(steps), rows, clock)
            else:
                is_end = len(devices) == len(pipeline.steps) and not pipeline.is_followed
                part = in_parts(steps, rows, backend, clock, may_repeat_groups=is_end)
                rows, report = part.rows, _report(part, rows.count)
            reports.append(report)
    return rows, _with_devices(_joined(reports, taken), devices)


def _check_all_taken(steps: Sequence[Step], refused: Sequence[str | None]) -> None:
    for place, (step, sentence) in enumerate(zip(steps, refused, strict=True), 1):
        if sentence is not None:
            name = step.__struct_config__.tag
            raise BadCall(
                f"the gpu is insisted on (spark.penstock.devices) and does not take {name}, step "
                f"{place} of {len(steps)}: {sentence}, which stays on the CPU; set it to auto, "
                "panes or cpu",
                code="no_device",
            )


def in_parts(
    steps: Sequence[Step],
    rows: Rows,
    backend: Backend,
    clock: Clock = SYSTEM_CLOCK,
    *,
    may_repeat_groups: bool,
) -> _Part:
    """The rows after steps on a device, made of halves where all of them do not fit.

    `may_repeat_groups`: several partial results of a group are as good as one.
    """
    try:
        return _Part(*run_steps(steps, rows, backend, clock))
    except Exception as error:
        # Pinned memory of the host ends in an error of CUDA, that of the device in a MemoryError.
        if cause_of(error) != "full":
            raise
        refusal = DeviceRefused("full", f"{rows.count} rows do not fit: {error}")
        if rows.count < 2 * PART_ROWS_MIN or not _can_split(steps, may_repeat_groups):
            raise refusal from error
    # Not in the handler: the error holds what the device was doing, memory with it.
    backend.free()
    half = rows.count // 2
    first, second = (
        in_parts(steps, piece, backend, clock, may_repeat_groups=may_repeat_groups)
        for piece in (_sliced(rows, 0, half), _sliced(rows, half, rows.count))
    )
    whole = _concatenated(first.rows, second.rows)
    if isinstance(steps[-1], Sorted):
        whole = after(steps[-1], whole)
    return _Part(whole, _added(first.run, second.run), first.parts + second.parts)


def _can_split(steps: Sequence[Step], may_repeat_groups: bool) -> bool:
    """Whether the results of halves, one behind the other, are that of the whole: each row by
    itself, then at most an order, which is made again, or groups where they may be repeated."""
    *rest, last = steps
    if any(isinstance(step, Grouped | Sorted) for step in rest):
        return False
    return may_repeat_groups or not isinstance(last, Grouped)


def _sliced(rows: Rows, start: int, end: int) -> Rows:
    return Rows(tuple(column[start:end] for column in rows.columns), end - start)


def _concatenated(first: Rows, second: Rows) -> Rows:
    columns = zip(first.columns, second.columns, strict=True)
    return Rows(tuple(pa.concat_arrays(pair) for pair in columns), first.count + second.count)


def _added(first: DeviceRun, second: DeviceRun) -> DeviceRun:
    def sums(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
        return tuple(a + b for a, b in zip(left, right, strict=True))

    return DeviceRun(
        sums(first.step_us, second.step_us),
        sums(first.step_rows, second.step_rows),
        sums(first.step_bytes, second.step_bytes),
        tuple(map(added_times, first.event_times, second.event_times)),
        first.to_gpu_us + second.to_gpu_us,
        first.to_gpu_bytes + second.to_gpu_bytes,
        first.to_cpu_us + second.to_cpu_us,
        first.to_cpu_bytes + second.to_cpu_bytes,
    )


def added_times(first: EventTimes | None, second: EventTimes | None) -> EventTimes | None:
    """The event times of two parts together."""
    if first is None or second is None:
        return first or second
    count = first.count + second.count
    total_ms = first.mean_ms * first.count + second.mean_ms * second.count
    return EventTimes(
        count, min(first.min_ms, second.min_ms), max(first.max_ms, second.max_ms), total_ms / count
    )


def _report(part: _Part, taken: int) -> Report:
    run = part.run
    return Report(
        taken,
        run.event_times,
        run.step_us,
        step_bytes=run.step_bytes,
        step_rows=run.step_rows,
        to_gpu_us=run.to_gpu_us,
        to_gpu_bytes=run.to_gpu_bytes,
        to_cpu_us=run.to_cpu_us,
        to_cpu_bytes=run.to_cpu_bytes,
        splits=part.parts if part.parts > 1 else 0,
    )


def _joined(reports: Sequence[Report], taken: int) -> Report:
    """The report of neighbours that ran one after the other."""
    return Report(
        taken,
        tuple(times for report in reports for times in report.event_times),
        tuple(us for report in reports for us in report.step_us),
        step_bytes=tuple(size for report in reports for size in report.step_bytes),
        step_rows=tuple(count for report in reports for count in report.step_rows),
        to_gpu_us=sum(report.to_gpu_us for report in reports),
        to_gpu_bytes=sum(report.to_gpu_bytes for report in reports),
        to_cpu_us=sum(report.to_cpu_us for report in reports),
        to_cpu_bytes=sum(report.to_cpu_bytes for report in reports),
        splits=sum(report.splits for report in reports),
    )


def _with_devices(report: Report, devices: Sequence[str]) -> Report:
    if set(devices) <= {GPU}:
        return report
    return msgspec.structs.replace(report, step_devices=tuple(devices))
