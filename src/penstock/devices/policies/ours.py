"""`ours`: the cheapest of all splits of the chain over CPU and GPU, transfers included.

Rows begin in the memory of the CPU and end there. Every part of the work is reckoned with its own
time on the wall, so that the time of a split is a sum and the cheapest is found by a dynamic
programme: of all ways to come to an operation on a device only the cheapest matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec

from penstock.devices.components import device_taken
from penstock.devices.mapping import OperationDevice
from penstock.devices.stage_time import NO_TIME, Ms, StageSize
from penstock.fit.line import Line
from penstock.model.device_plans import Device, OperationKind

NEVER = Ms(math.inf, math.inf, math.inf)
ONE_TASK = StageSize(tasks=1, bytes=0, largest_bytes=0, cores=1)


class SplitCosts(Protocol):
    """The costs that splits are reckoned with; `QueryCosts` are those of a query."""

    @property
    def kinds(self) -> tuple[OperationKind, ...]: ...
    def operation(self, index: int, device: Device) -> Line: ...
    def is_operation_measured(self, index: int, device: Device) -> bool: ...
    def share(self, index: int) -> float: ...
    def transfer(self, device: Device) -> Line: ...


class SplitTable(msgspec.Struct, frozen=True):
    """The times that splits are made of: of each operation on each device, and of moving its input
    to a device before it, where all tasks have that device. The last of `to_cpu` moves what comes
    out of the last operation. `size` says how many tasks can have a GPU."""

    on_cpu: tuple[Ms, ...]
    on_gpu: tuple[Ms, ...]
    to_cpu: tuple[Ms, ...]
    to_gpu: tuple[Ms, ...]
    size: StageSize = ONE_TASK

    def operation(self, index: int, device: Device) -> Ms:
        return (self.on_gpu if device == "gpu" else self.on_cpu)[index]

    def move(self, index: int, before: Device, after: Device) -> Ms:
        if before == after:
            return NO_TIME
        return (self.to_gpu if after == "gpu" else self.to_cpu)[index]

    def all_on_cpu(self) -> tuple[Device, ...]:
        """The split without a GPU, which tasks that cannot have one run, too."""
        cpu: Device = "cpu"
        return (cpu,) * len(self.on_cpu)


def split_table(
    costs: SplitCosts, size: StageSize, *, has_gpu: bool, shipped_factor: float = 1.0
) -> SplitTable:
    """The times of a batch's stage by what its query has learned. Those of operations that were not
    measured are by the costs we ship, times a factor. A GPU never runs what it refuses."""

    def operation(index: int, device: Device) -> Ms:
        if device_taken(costs.kinds[index], device) != device:
            return NEVER
        time = size.time(costs.operation(index, device), 1.0, device)
        is_measured = costs.is_operation_measured(index, device)
        return time if is_measured else time.times(shipped_factor)

    indexes = range(len(costs.kinds))
    shares = [costs.share(index) for index in (*indexes, len(costs.kinds))]
    to_cpu, to_gpu = costs.transfer("cpu"), costs.transfer("gpu")
    return SplitTable(
        tuple(operation(index, "cpu") for index in indexes),
        tuple(operation(index, "gpu") if has_gpu else NEVER for index in indexes),
        tuple(size.time(to_cpu, share, "gpu") for share in shares),
        tuple(size.time(to_gpu, share, "gpu") for share in shares[:-1]),
        size,
    )


def split_time(table: SplitTable, devices: Sequence[Device]) -> Ms:
    """The time of one split; of tasks beyond the bound on workers all is on the CPU."""
    time = _task_time(table, devices)
    if "gpu" not in devices:
        return time
    return table.size.mixed(_task_time(table, table.all_on_cpu()), time)


def expected_ms(table: SplitTable, devices: Sequence[Device]) -> tuple[float, ...]:
    """The time of each operation of a split, summed over tasks, with those beyond the bound."""
    share = table.size.gpu_share(_task_time(table, table.all_on_cpu()), _task_time(table, devices))
    return tuple(
        _weighed(share, table.operation(index, device).summed, table.on_cpu[index].summed)
        for index, device in enumerate(devices)
    )


def _weighed(share: float, on_gpu_ms: float, on_cpu_ms: float) -> float:
    return on_gpu_ms if share == 1.0 else share * on_gpu_ms + (1.0 - share) * on_cpu_ms


def _task_time(table: SplitTable, devices: Sequence[Device]) -> Ms:
    """The time of one split where every task has the devices that it names."""
    time = NO_TIME
    where: Device = "cpu"
    for index, device in enumerate(devices):
        time = time.plus(table.move(index, where, device)).plus(table.operation(index, device))
        where = device
    return time.plus(table.move(len(devices), where, "cpu"))


def cheapest_split(table: SplitTable) -> tuple[Device, ...]:
    """The split that takes the least time on the wall; of equals the one with the CPU first.

    Where tasks beyond the bound use the CPU, the cheapest for tasks that have the GPU is found: the
    less these take, the less does the stage. If it ends with others all the same, all are on the
    CPU.
    """
    on_cpu: tuple[float, tuple[Device, ...]] = (0.0, ())
    on_gpu: tuple[float, tuple[Device, ...]] = (math.inf, ())
    for index in range(len(table.on_cpu)):
        on_cpu, on_gpu = (
            min(
                _extended(on_cpu, table, index, "cpu", "cpu"),
                _extended(on_gpu, table, index, "gpu", "cpu"),
                key=lambda way: way[0],
            ),
            min(
                _extended(on_cpu, table, index, "cpu", "gpu"),
                _extended(on_gpu, table, index, "gpu", "gpu"),
                key=lambda way: way[0],
            ),
        )
    end = len(table.on_cpu)
    from_gpu = on_gpu[0] + table.move(end, "gpu", "cpu").wall
    best = on_cpu[1] if on_cpu[0] <= from_gpu else on_gpu[1]
    without = table.all_on_cpu()
    gains = split_time(table, best).wall < split_time(table, without).wall
    return best if gains or not table.size.is_bounded else without


def _extended(
    way: tuple[float, tuple[Device, ...]],
    table: SplitTable,
    index: int,
    before: Device,
    device: Device,
) -> tuple[float, tuple[Device, ...]]:
    """A way to an operation, lengthened by this operation on a device."""
    ms, devices = way
    added_ms = table.move(index, before, device).wall + table.operation(index, device).wall
    return ms + added_ms, (*devices, device)


def map_devices(table: SplitTable, devices: Sequence[Device]) -> tuple[OperationDevice, ...]:
    """The operations of a split with their reasons: what each takes here and there, and what
    another device for it alone would change."""
    least_ms = split_time(table, devices).wall
    mapped = []
    for index, device in enumerate(devices):
        other: Device = "cpu" if device == "gpu" else "gpu"
        changed = [*devices[:index], other, *devices[index + 1 :]]
        longer_ms = split_time(table, changed).wall - least_ms
        here_ms, there_ms = (table.operation(index, each).wall for each in (device, other))
        reason = f"{device} {_ms(here_ms)}"
        if math.isfinite(longer_ms):
            verb = "longer" if longer_ms >= 0 else "shorter"
            reason += (
                f", {other} {_ms(there_ms)}; on the {other} the stage would take "
                f"{_ms(abs(longer_ms))} {verb}, transfers included"
            )
        mapped.append(OperationDevice(device, reason))
    return tuple(mapped)


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.3g} ms"
