"""The GPU of this process: found when it is first needed, and kept until the process ends.

A worker holds its slot for as long as it lives, because it holds memory of the device for as long.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.devices.gpu.cuda import Cuda, imported_cupy
from penstock.devices.gpu.losses import refusal_of
from penstock.devices.gpu.slots import Slot, try_slot
from penstock.devices.pipeline import DeviceRefused

MEMORY_SHARE = 0.8
"""The part of a device's memory that the pools of its workers have together; contexts and what the
kernels of CuPy take are beside it."""
VERSIONS_PER_MAJOR = 1_000


class WorkerGpu:
    """The GPU that this process uses, if any. Once lost it is not asked again: after such an error
    every call of CUDA in the process fails."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._cuda: Cuda | None = None
        self._slot: Slot | None = None
        self._workers = self._memory_bytes = 0
        self._lost: DeviceRefused | None = None

    @contextmanager
    def used(self, workers: int) -> Iterator[Cuda]:
        """The GPU, of which so many workers may have one; DeviceRefused if it cannot be had, or is
        lost or full while it is used. This one's part of the memory is the smallest that it was
        ever told of: queries that share a worker may differ in how many they let in."""
        if self._lost is not None:
            raise self._lost
        try:
            cuda = self._opened(workers)
            with cuda.current():
                yield cuda
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            if refusal.cause == "gone":
                self._lost = refusal
            raise refusal from error

    def _opened(self, workers: int) -> Cuda:
        if self._cuda is None:
            cupy = imported_cupy()
            count = _device_count(cupy)
            ordinal, slot = self._free_device(cupy, count, workers)
            try:
                self._memory_bytes = int(cupy.cuda.Device(ordinal).mem_info[1] * MEMORY_SHARE)
                self._cuda = Cuda(cupy, ordinal, self._memory_bytes // workers)
            except BaseException:
                slot.close()
                raise
            self._slot, self._workers = slot, workers
        elif workers > self._workers:
            self._cuda.limit_memory(self._memory_bytes // workers)
            self._workers = workers
        return self._cuda

    def _free_device(self, cupy: Any, count: int, workers: int) -> tuple[int, Slot]:
        """A device with a free slot; processes begin to look at different ones."""
        for turn in range(count):
            ordinal = (os.getpid() + turn) % count
            slot = try_slot(str(cupy.cuda.Device(ordinal).pci_bus_id), workers, self._folder)
            if slot is not None:
                return ordinal, slot
        raise DeviceRefused(
            "busy",
            f"{workers} workers of this user are at each of {count} GPUs already (for more raise "
            "spark.penstock.devices.gpuWorkers)",
        )

    def close(self) -> None:
        """Give back memory and slot."""
        if self._cuda is not None:
            self._cuda.free()
            self._cuda = None
        if self._slot is not None:
            self._slot.close()
            self._slot = None


def _device_count(cupy: Any) -> int:
    """The number of devices; refused if there is none or the driver is too old."""
    runtime = cupy.cuda.runtime
    wanted, driver = runtime.runtimeGetVersion(), runtime.driverGetVersion()
    if driver and driver // VERSIONS_PER_MAJOR < wanted // VERSIONS_PER_MAJOR:
        raise DeviceRefused(
            "driver",
            f"CuPy was built for CUDA {_version(wanted)} and the driver takes {_version(driver)}",
        )
    count = int(runtime.getDeviceCount())
    if not count:
        raise DeviceRefused("absent", "the driver of CUDA has no device")
    return count


def _version(number: int) -> str:
    major, minor = divmod(number, VERSIONS_PER_MAJOR)
    return f"{major}.{minor // 10}"


HERE = WorkerGpu()
"""That of this process."""
