"""A calibration that is measured at once, instead of learned from batches: each operation on each
device that takes it, over many sizes, transfers apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from statistics import median
from typing import TypeAlias, get_args

from penstock.devices.calibration import CalibratedLine, Calibration, Machine
from penstock.devices.components import GPU_REFUSES, TO_CPU, TO_GPU, operation_part
from penstock.devices.measure import OperationTiming
from penstock.devices.measure import measure as measure_once
from penstock.fit.measured_line import measured_line
from penstock.model.device_plans import Device, OperationKind

SIZES = tuple((4 << 10) * 4**step for step in range(9))
"""4 KB to 256 MB, each four times the one before."""
ROW_BYTES: dict[OperationKind, int] = {"parse": 20}
ROW_BYTES_USUAL = 32
RUNS = 3
KINDS: tuple[OperationKind, ...] = get_args(OperationKind)

Measure: TypeAlias = Callable[[Device, OperationKind, int], OperationTiming]
Points: TypeAlias = dict[str, list[tuple[float, float]]]
"""Pairs of size and milliseconds, by the part of the cost that they are of."""


def calibrated(
    machine: Machine,
    sizes: Iterable[int] = SIZES,
    measure: Measure = measure_once,
    heard: Callable[[OperationTiming], None] = lambda timing: None,
) -> Calibration:
    """The calibration of this machine, which is of the kind `machine`; `heard` gets the median run
    of each operation, device and size as it is made. What a GPU refuses has no costs there."""
    points: Points = defaultdict(list)
    for timing in _timings(machine, tuple(sizes), measure):
        heard(timing)
        points[operation_part(timing.kind, timing.device)].append((timing.bytes, timing.ms))
        if timing.to_gpu_bytes:
            points[TO_GPU].append((timing.to_gpu_bytes, timing.to_gpu_ms))
            points[TO_CPU].append((timing.to_cpu_bytes, timing.to_cpu_ms))
    return Calibration(machine, {part: _line(measured) for part, measured in points.items()})


def _timings(
    machine: Machine, sizes: tuple[int, ...], measure: Measure
) -> Iterator[OperationTiming]:
    for kind in KINDS:
        has_gpu = machine.gpu is not None and kind not in GPU_REFUSES
        devices: tuple[Device, ...] = ("cpu", "gpu") if has_gpu else ("cpu",)
        for size in sizes:
            rows = max(size // ROW_BYTES.get(kind, ROW_BYTES_USUAL), 1)
            for device in devices:
                # The first run loads what it needs, and is not counted.
                measure(device, kind, rows)
                yield _middle([measure(device, kind, rows) for _ in range(RUNS)])


def _middle(timings: list[OperationTiming]) -> OperationTiming:
    """The run that took the middle of the times, transfers included."""
    totals = [each.ms + each.to_gpu_ms + each.to_cpu_ms for each in timings]
    return timings[totals.index(median(totals))]


def _line(points: list[tuple[float, float]]) -> CalibratedLine:
    line = measured_line(points)
    return CalibratedLine(line.fixed, line.slope * 1e6, len(points))
