"""CUDA by CuPy: a device with its stream, pool of memory, pinned buffers and kernels.

CuPy is imported when a worker first needs it, never before Spark's daemon has forked: a process
with a context of CUDA must not fork.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from penstock.devices.gpu.backend import Array, Mark
from penstock.devices.gpu.kernels import SOURCE
from penstock.devices.operators.arithmetic import INT64_MAX, INT64_MIN
from penstock.devices.operators.rows import Numbers

ALIGNED = 256
THREADS = 256
BLOCKS_MAX = 8_192
SUM_THREADS, SUM_ROWS = (32, 256), 1_024
"""Threads that add up a group: few, or many from so many rows of a group on, on average."""
LOAD = 2
"""Slots of the hash table for each row, at least."""
STAGING_BYTES = 1 << 20
US_PER_MS = 1_000


class Cuda:
    """A GPU. All is asked for on one stream, in memory of a pool that does not grow past a limit;
    transfers go through buffers that the system does not page out."""

    def __init__(self, cupy: Any, ordinal: int, memory_bytes: int) -> None:
        self.xp = cupy
        self.tables: dict[bytes, Any] = {}
        self._cuda = cupy.cuda
        self._device = cupy.cuda.Device(ordinal)
        with self._device:
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._pool = cupy.cuda.MemoryPool()
            self._pool.set_limit(size=memory_bytes)
            self._kernels = cupy.RawModule(code=SOURCE)
            self._functions: dict[str, Any] = {}
            self._sent = cupy.cuda.Event(disable_timing=True)
        self._staging: Numbers = np.empty(0, np.uint8)

    @contextmanager
    def current(self) -> Iterator[None]:
        """The device, its stream and its pool as those that CuPy uses in this thread."""
        with ExitStack() as stack:
            stack.enter_context(self._device)
            stack.enter_context(self._stream)
            stack.enter_context(self._cuda.using_allocator(self._pool.malloc))
            yield

    # Transfers

    def upload(self, arrays: Sequence[Numbers]) -> list[Array]:
        offsets, total = _offsets([array.nbytes for array in arrays])
        # The copy before this one may not have left its buffer yet.
        self._sent.synchronize()
        staging = self._pinned(total)
        for array, offset in zip(arrays, offsets, strict=True):
            staging[offset : offset + array.nbytes] = _flat_bytes(np, array)
        block = self.xp.empty(total, dtype=np.uint8)
        if total:
            block.set(staging[:total], stream=self._stream)
        self._sent.record(self._stream)
        return [
            self._part(block, offset, array.nbytes, array.dtype)
            for array, offset in zip(arrays, offsets, strict=True)
        ]

    def download(self, arrays: Sequence[Array]) -> list[Numbers]:
        offsets, total = _offsets([array.nbytes for array in arrays])
        block = self.xp.empty(total, dtype=np.uint8)
        for array, offset in zip(arrays, offsets, strict=True):
            if array.nbytes:
                block[offset : offset + array.nbytes] = _flat_bytes(self.xp, array)
        self._sent.synchronize()
        staging = self._pinned(total)
        if total:
            block.get(stream=self._stream, out=staging[:total])
        self._stream.synchronize()
        # The buffer is used again, and what is made of the copy lives on.
        memory = staging[:total].copy()
        return [
            memory[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
            for array, offset in zip(arrays, offsets, strict=True)
        ]

    def _pinned(self, size: int) -> Numbers:
        if len(self._staging) < size:
            wanted = max(size, 2 * len(self._staging), STAGING_BYTES)
            memory = self._cuda.alloc_pinned_memory(wanted)
            self._staging = np.frombuffer(memory, np.uint8, wanted)
        return self._staging

    def _part(self, block: Array, offset: int, size: int, dtype: np.dtype[Any]) -> Array:
        if not size:
            return self.xp.empty(0, dtype=dtype)
        return block[offset : offset + size].view(dtype)

    # Times

    def mark(self) -> Mark:
        event = self._cuda.Event()
        event.record(self._stream)
        return event

    def elapsed_us(self, start: Mark, end: Mark) -> int:
        end.synchronize()
        elapsed_ms: float = self._cuda.get_elapsed_time(start, end)
        return round(elapsed_ms * US_PER_MS)

    # Kernels

    def stable_order(self, keys: Array) -> Array:
        # CuPy knows no order but a stable one. What there is nothing to order of never gets to
        # the library that sorts for it.
        return keys.argsort() if len(keys) > 1 else self.xp.arange(len(keys))

    def leaders(self, words: Array) -> Array:
        xp = self.xp
        width, count = words.shape
        slots_count = 1 << max((LOAD * count - 1).bit_length(), 1)
        slots = xp.full(slots_count, -1, dtype=np.int64)
        firsts = xp.full(slots_count, INT64_MAX, dtype=np.int64)
        slot_of = xp.empty(count, dtype=np.int64)
        lines = xp.ascontiguousarray(words)
        mask = np.uint64(slots_count - 1)
        self._launch("claim_slots", count, lines, np.int32(width), np.int64(count), slots, mask,
                     slot_of, firsts)  # fmt: skip
        return firsts[slot_of]

    def sums(self, values: Array, ids: Array, count: int) -> Array:
        sums = self.xp.zeros(count, dtype=np.int64)
        self._reduce("whole_sums", values, ids, sums)
        return sums

    def extremes(self, values: Array, ids: Array, count: int, *, is_max: bool) -> Array:
        best = self.xp.full(count, INT64_MIN if is_max else INT64_MAX, dtype=np.int64)
        self._reduce("largest" if is_max else "smallest", values, ids, best)
        return best

    def _reduce(self, kernel: str, values: Array, ids: Array, result: Array) -> None:
        numbers = self.xp.ascontiguousarray(values)
        places = self.xp.ascontiguousarray(ids)
        self._launch(kernel, len(values), numbers, places, np.int64(len(values)), result)

    def ordered_sums(self, values: Array, ids: Array, count: int) -> Array:
        sums = self.xp.zeros(count, dtype=np.float64)
        if not count:
            return sums
        sizes = self.sums(self.xp.ones(len(ids), dtype=np.int64), ids, count)
        starts = self.xp.cumsum(sizes) - sizes
        order = self.stable_order(ids)
        threads = SUM_THREADS[len(values) >= SUM_ROWS * count]
        arguments = (self.xp.ascontiguousarray(values), order, starts, sizes, sums)
        kernel = self._kernel("ordered_sums")
        kernel((count,), (threads,), arguments, shared_mem=threads * values.dtype.itemsize)
        return sums

    def _launch(self, kernel: str, count: int, *arguments: Any) -> None:
        if count:
            blocks = min(-(-count // THREADS), BLOCKS_MAX)
            self._kernel(kernel)((blocks,), (THREADS,), arguments)

    def _kernel(self, name: str) -> Any:
        # CuPy would look it up anew each time, a part of what a small batch takes.
        if name not in self._functions:
            self._functions[name] = self._kernels.get_function(name)
        return self._functions[name]

    def limit_memory(self, memory_bytes: int) -> None:
        """The pool grows no further than this from now on; what nothing uses is given back, static
        tables with it. Between batches, when nothing else is left in the pool."""
        self.free()
        # The pool has a limit of each device apart, too.
        with self._device:
            self._pool.set_limit(size=memory_bytes)

    def free(self) -> None:
        self.tables.clear()
        # The pool has blocks of each device apart, and frees those of the current one.
        with self._device:
            self._pool.free_all_blocks()


def _offsets(sizes: Sequence[int]) -> tuple[list[int], int]:
    """The places of parts of these sizes behind each other, aligned, and where the last ends."""
    offsets, total = [], 0
    for size in sizes:
        offsets.append(total)
        total += -(-size // ALIGNED) * ALIGNED
    return offsets, total


def _flat_bytes(xp: Any, array: Array) -> Array:
    return xp.ascontiguousarray(array).reshape(-1).view(np.uint8)


def imported_cupy() -> Any:
    """The package CuPy; an ImportError where it is not installed."""
    return importlib.import_module("cupy")
