"""Worker of the devices suite: one operation on both devices, over many sizes, transfers apart.

`operations` measures every size. `inflection` measures small sizes, then those around the point
where devices cross, as batches run; planners find the point too, from starts that are ten times too
high and too low.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, get_args

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.model.device_plans import Device, OperationKind
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.measure.inflection import (
    FACTORS,
    Execute,
    LearnedPoint,
    OperationRun,
    PlannedBy,
    crossing,
    fitted_costs,
    learned_point,
    sizes_around,
    unclear,
)
from penstock_lab.measure.size_times import SizeTimes
from penstock_lab.percentiles import median

MEASURES = "penstock.devices.measure"
DEVICES: tuple[Device, ...] = get_args(Device)
POLICIES: tuple[PlannedBy, ...] = get_args(PlannedBy)
RUNS_MIN, RUNS_MAX = 3, 50
ROWS_TRIED = 1_000
"""Rows of the run that tells how many bytes a row has, and loads what an operation needs."""


class Timing(Protocol):
    """One run of an operation, as the product measures it."""

    @property
    def bytes(self) -> int: ...
    @property
    def ms(self) -> float: ...
    @property
    def to_gpu_ms(self) -> float: ...
    @property
    def to_gpu_bytes(self) -> int: ...
    @property
    def to_cpu_ms(self) -> float: ...
    @property
    def to_cpu_bytes(self) -> int: ...


Measure: TypeAlias = Callable[[Device, OperationKind, int], Timing]


def measure(device: Device, kind: OperationKind, rows: int) -> Timing:
    """One run over so many rows; what a GPU needs is loaded in this process and no other."""
    timing: Timing = importlib.import_module(MEASURES).measure(device, kind, rows)
    return timing


def left_out(kind: OperationKind) -> str | None:
    """The reason to leave an operation out of a comparison of devices; None if there is none. One
    that the GPU does not take runs on the CPU wherever it is asked for: its times are the same."""
    refusal = importlib.import_module(MEASURES).gpu_refusal(kind)
    return None if refusal is None else f"the GPU does not take it: {refusal} stays on the CPU"


class Options(msgspec.Struct, frozen=True):
    """An operation, and sizes of its input in bytes."""

    kind: OperationKind
    sizes: tuple[int, ...]
    seconds: float
    """How long an operation of a size is repeated on a device, three times at least."""
    batches: int = 100
    seed: int = 7


def main(job: Job) -> dict[str, Any]:
    options = msgspec.convert(job.options, Options)
    reason = left_out(options.kind)
    if reason is not None:
        return {"reason": reason}
    if job.system == "operations":
        return {"sizes": msgspec.to_builtins(measured_sizes(options))}
    return learned(options)


class Operation:
    """One kind of operation that can be run over about so many bytes."""

    def __init__(self, kind: OperationKind, run: Measure = measure) -> None:
        self._kind, self._run = kind, run
        tried = [run(device, kind, ROWS_TRIED) for device in DEVICES for _ in range(RUNS_MIN)]
        self.row_bytes = max(tried[0].bytes / ROWS_TRIED, 1.0)

    def rows_of(self, size: int) -> int:
        return max(round(size / self.row_bytes), 1)

    def execute(self, device: Device, size: int) -> OperationRun:
        timing = self._run(device, self._kind, self.rows_of(size))
        return OperationRun(
            timing.bytes,
            timing.ms,
            timing.to_gpu_ms,
            timing.to_gpu_bytes,
            timing.to_cpu_ms,
            timing.to_cpu_bytes,
        )


def runs_of(
    execute: Execute, device: Device, size: int, seconds: float, clock: Clock = SYSTEM_CLOCK
) -> list[OperationRun]:
    """An operation repeated for so long; its first run is not counted."""
    execute(device, size)
    until_s = clock.monotonic_s() + seconds
    runs: list[OperationRun] = []
    while len(runs) < RUNS_MIN or (clock.monotonic_s() < until_s and len(runs) < RUNS_MAX):
        runs.append(execute(device, size))
    return runs


def middle_run(runs: Sequence[OperationRun]) -> OperationRun:
    """Medians of runs over the same rows."""
    return msgspec.structs.replace(
        runs[0],
        ms=median([run.ms for run in runs]) or 0.0,
        to_gpu_ms=median([run.to_gpu_ms for run in runs]) or 0.0,
        to_cpu_ms=median([run.to_cpu_ms for run in runs]) or 0.0,
    )


def swept(execute: Execute, options: Options) -> dict[Device, list[OperationRun]]:
    """The median run of each size, by device; devices take turns."""
    made: dict[Device, list[OperationRun]] = {device: [] for device in DEVICES}
    for size in options.sizes:
        for device in DEVICES:
            made[device].append(middle_run(runs_of(execute, device, size, options.seconds)))
    return made


def in_turns(
    execute: Execute, sizes: Sequence[int], options: Options, clock: Clock = SYSTEM_CLOCK
) -> dict[Device, list[OperationRun]]:
    """The median run of each size, by device, of runs as batches have them: sizes come in random
    order, so that each run is over rows that were just made. Of runs over the same rows the later
    ones find them in caches, and memory as one of their size has left it."""
    luck = random.Random(options.seed)
    runs: dict[tuple[Device, int], list[OperationRun]] = {
        (device, size): [] for device in DEVICES for size in sizes
    }
    until_s = clock.monotonic_s() + options.seconds * len(runs)
    rounds = 0
    while rounds <= RUNS_MIN or (clock.monotonic_s() < until_s and rounds <= RUNS_MAX):
        for device in DEVICES:
            for size in luck.sample(sizes, len(sizes)):
                runs[device, size].append(execute(device, size))
        rounds += 1
    # The first run of each loads what it needs.
    return {device: [middle_run(runs[device, size][1:]) for size in sizes] for device in DEVICES}


def measured_sizes(options: Options, run: Measure = measure) -> list[SizeTimes]:
    operation = Operation(options.kind, run)
    return size_times(operation, options.sizes, swept(operation.execute, options))


def size_times(
    operation: Operation,
    sizes: Sequence[int],
    by_device: Mapping[Device, Sequence[OperationRun]],
) -> list[SizeTimes]:
    return [
        SizeTimes(
            size,
            operation.rows_of(size),
            cpu.ms,
            gpu.ms,
            gpu.to_gpu_ms,
            gpu.to_cpu_ms,
        )
        for size, cpu, gpu in zip(sizes, by_device["cpu"], by_device["gpu"], strict=True)
    ]


def total_ms(runs: Sequence[OperationRun]) -> dict[int, float]:
    return {each.bytes: each.total_ms for each in runs}


def learned(options: Options, run: Measure = measure) -> dict[str, Any]:
    """The point where devices cross, and the points that policies arrive at."""
    operation = Operation(options.kind, run)
    execute = operation.execute
    by_device = swept(execute, options)
    cpu, gpu = by_device["cpu"], by_device["gpu"]
    about = crossing(total_ms(cpu), total_ms(gpu))
    if about is None:
        cheaper = "CPU" if cpu[-1].total_ms <= gpu[-1].total_ms else "GPU"
        span = f"{options.sizes[0]:,} to {options.sizes[-1]:,} bytes"
        return {"measured_bytes": None, "reason": f"the {cheaper} is cheaper from {span}"}
    costs = fitted_costs(cpu, gpu)
    near = sizes_around(about)
    as_batches = in_turns(execute, near, options)
    sizes = msgspec.to_builtins(size_times(operation, near, as_batches))
    cpu_ms, gpu_ms = (total_ms(as_batches[device]) for device in DEVICES)
    truth = crossing(cpu_ms, gpu_ms)
    reason = unclear(cpu_ms, gpu_ms, truth)
    if truth is None or reason is not None:
        return {"measured_bytes": None, "sizes": sizes, "reason": reason}
    points = [
        learned_point(
            options.kind, policy, factor, costs, truth, execute, options.batches, options.seed
        )
        for policy in POLICIES
        for factor in FACTORS
    ]
    made: list[LearnedPoint] = [point for point in points if point is not None]
    return {
        "measured_bytes": truth,
        "points": msgspec.to_builtins(made),
        "sizes": sizes,
        "reason": "" if made else "a byte costs no less on the GPU",
    }


if __name__ == "__main__":
    serve(main)
