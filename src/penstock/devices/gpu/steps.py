"""The steps of a pipeline on a device: one transfer there, all steps, one transfer back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.devices.gpu import order
from penstock.devices.gpu.aggregate import aggregate
from penstock.devices.gpu.arrow import fetched, to_arrow, to_device
from penstock.devices.gpu.backend import Array, Backend
from penstock.devices.gpu.columns import DeviceColumn, DeviceRows, shared_validity, validity
from penstock.devices.gpu.evaluate import column, mask
from penstock.devices.gpu.join import join
from penstock.devices.gpu.texts import shared
from penstock.devices.operators.expressions import Expression
from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import (
    US_PER_MS,
    EventTime,
    EventTimes,
    Expand,
    Filter,
    Grouped,
    Joined,
    Parse,
    Project,
    Sorted,
    Step,
    static_table,
)
from penstock.errors import Bug

TABLES_MAX = 4


@dataclass(frozen=True)
class DeviceRun:
    """The report of steps that ran on a device: of each step its time, and rows and bytes that went
    in, and the transfers."""

    step_us: tuple[int, ...]
    step_rows: tuple[int, ...]
    step_bytes: tuple[int, ...]
    event_times: tuple[EventTimes | None, ...]
    to_gpu_us: int
    to_gpu_bytes: int
    to_cpu_us: int
    to_cpu_bytes: int


def run_steps(
    steps: Sequence[Step], rows: Rows, backend: Backend, clock: Clock = SYSTEM_CLOCK
) -> tuple[Rows, DeviceRun]:
    """The rows that steps make of these on a device, and their report."""
    marks = [backend.mark()]
    current, sent_bytes = to_device(rows, backend)
    marks.append(backend.mark())
    times: list[EventTimes | None] = []
    sizes: list[tuple[int, int]] = []
    for step in steps:
        sizes.append((current.count, current.arrow_bytes))
        if isinstance(step, EventTime):
            times.append(_event_times(column(step.time, current), backend))
        else:
            current = after(step, current)
        marks.append(backend.mark())
    arrays, fetched_bytes = fetched(current)
    marks.append(backend.mark())
    began_s = clock.monotonic_s()
    result = to_arrow(current, arrays)
    built_us = round((clock.monotonic_s() - began_s) * 1_000_000)
    sent_us, *step_us, fetched_us = (
        backend.elapsed_us(start, end) for start, end in pairwise(marks)
    )
    return result, DeviceRun(
        tuple(step_us),
        tuple(count for count, _ in sizes),
        tuple(size for _, size in sizes),
        tuple(times),
        sent_us,
        sent_bytes,
        fetched_us + built_us,
        fetched_bytes,
    )


def after(step: Step, rows: DeviceRows) -> DeviceRows:
    """The rows after a step that changes them."""
    match step:
        case Filter():
            return rows.filtered(mask(step.condition, rows))
        case Project():
            columns = tuple(column(each, rows) for each in step.columns)
            return DeviceRows(rows.backend, columns, rows.count)
        case Expand():
            return expand(step.projections, rows)
        case Grouped():
            return aggregate(step.keys, step.aggregates, rows)
        case Joined():
            table = _table(step, rows.backend)
            return join(step.keys, table, step.table_keys, rows, step.how)
        case Sorted():
            if step.count is None:
                return order.sort(step.keys, rows)
            return order.top(step.keys, step.count, rows)
        case EventTime():
            return rows
        case Parse():
            raise Bug("a device was asked to parse text, which it refuses; report this", code="bug")


def _table(step: Joined, backend: Backend) -> DeviceRows:
    """The static table of a join, which stays on the device for the batches to come."""
    if step.table not in backend.tables:
        if len(backend.tables) >= TABLES_MAX:
            backend.tables.clear()
        backend.tables[step.table], _ = to_device(static_table(step.table), backend)
    table: DeviceRows = backend.tables[step.table]
    return table


def expand(projections: tuple[tuple[Expression, ...], ...], rows: DeviceRows) -> DeviceRows:
    """All copies of the first row, then all of the second, and so on."""
    copies = [[column(each, rows) for each in projection] for projection in projections]
    columns = tuple(_interleaved(list(each), rows.backend) for each in zip(*copies, strict=True))
    return DeviceRows(rows.backend, columns, rows.count * len(projections))


def _interleaved(copies: list[DeviceColumn], backend: Backend) -> DeviceColumn:
    def woven(arrays: list[Array]) -> Array:
        return backend.xp.stack(arrays, axis=1).ravel()

    first, *_ = pieces = shared(copies, backend)
    values = woven([piece.values for piece in pieces])
    if shared_validity(pieces) is None:
        return DeviceColumn(first.type, values, None, first.dictionary)
    valid = woven([validity(piece, backend) for piece in pieces])
    return DeviceColumn(first.type, values, valid, first.dictionary)


def _event_times(times: DeviceColumn, backend: Backend) -> EventTimes | None:
    """Count, bounds and mean of times, in milliseconds; a row without one counts as 1970."""
    count = len(times.values)
    if not count:
        return None
    values = times.values
    if times.valid is not None:
        values = backend.xp.where(times.valid, values, np.int64(0))
    ms = values // np.int64(US_PER_MS)
    bounds = backend.xp.stack([ms.min(), ms.max()])
    (extremes,) = backend.download([bounds])
    return EventTimes(count, int(extremes[0]), int(extremes[1]), float(ms.mean()))
