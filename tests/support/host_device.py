"""A device made of NumPy, for tests of what runs on GPUs where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.devices.gpu.backend import Array, Backend, Mark
from penstock.devices.operators.arithmetic import INT64_MAX, INT64_MIN
from penstock.devices.operators.rows import Numbers


class HostBackend:
    """The memory of the host as a device; with `room_bytes` it takes no larger upload."""

    def __init__(self, room_bytes: int | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.xp: Any = np
        self.tables: dict[bytes, Any] = {}
        self.frees = 0
        self._room_bytes = room_bytes
        self._clock = clock

    def upload(self, arrays: Sequence[Numbers]) -> list[Array]:
        size = sum(array.nbytes for array in arrays)
        if self._room_bytes is not None and size > self._room_bytes:
            raise MemoryError(f"{size} bytes are more than {self._room_bytes}")
        return [array.copy() for array in arrays]

    def download(self, arrays: Sequence[Array]) -> list[Numbers]:
        return [np.ascontiguousarray(array) for array in arrays]

    def mark(self) -> Mark:
        return self._clock.monotonic_s()

    def elapsed_us(self, start: Mark, end: Mark) -> int:
        elapsed_s: float = end - start
        return round(elapsed_s * 1_000_000)

    def stable_order(self, keys: Array) -> Array:
        return np.argsort(keys, kind="stable")

    def leaders(self, words: Array) -> Array:
        if not words.shape[1]:
            return np.zeros(0, np.int64)
        _, firsts, places = np.unique(words, axis=1, return_index=True, return_inverse=True)
        return firsts[places.ravel()].astype(np.int64)

    def sums(self, values: Array, ids: Array, count: int) -> Array:
        sums = np.zeros(count, np.int64)
        np.add.at(sums, ids, values)
        return sums

    def ordered_sums(self, values: Array, ids: Array, count: int) -> Array:
        sums = np.zeros(count, np.float64)
        np.add.at(sums, ids, values)
        return sums

    def extremes(self, values: Array, ids: Array, count: int, *, is_max: bool) -> Array:
        best = np.full(count, INT64_MIN if is_max else INT64_MAX, np.int64)
        (np.maximum if is_max else np.minimum).at(best, ids, values)
        return best

    def free(self) -> None:
        self.tables.clear()
        self.frees += 1


class HostGpu:
    """The device above where a pipeline looks for a GPU."""

    def __init__(self, backend: HostBackend | None = None) -> None:
        self.backend = HostBackend() if backend is None else backend

    @contextmanager
    def used(self, workers: int) -> Iterator[Backend]:
        # A GPU does not warn either.
        with np.errstate(all="ignore"):
            yield self.backend


def cuda_error(status: int) -> Exception:
    kind = type("CUDARuntimeError", (RuntimeError,), {"__module__": "cupy_backends.cuda.api"})
    error: Any = kind("said by CUDA")
    error.status = status
    made: Exception = error
    return made
