"""Groups of rows with equal keys, found by a hash table on the device and numbered in the order in
which they first occur."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.devices.gpu.backend import Array, Backend
from penstock.devices.gpu.columns import DeviceColumn
from penstock.devices.gpu.comparison import ordinals

LOW_BITS = np.int64(32)
LOW_MASK = np.int64(2**32 - 1)
SIGN = np.int64(63)


@dataclass(frozen=True)
class Groups:
    """The group of each row, and the first row of each group."""

    backend: Backend
    ids: Array
    firsts: Array

    @property
    def count(self) -> int:
        return len(self.firsts)

    def sums(self, values: Array) -> Array:
        """The sum of the 64-bit numbers of each group, wrapping."""
        return self.backend.sums(values, self.ids, self.count)

    def exact_sums(self, values: Array) -> Array:
        """The sum of the 64-bit numbers of each group in 128 bits, the lower word first.

        Both halves of a number are summed by themselves, which cannot overflow.
        """
        xp = self.backend.xp
        highs, lows = self.sums(values >> LOW_BITS), self.sums(values & LOW_MASK)
        low = (highs << LOW_BITS) + lows
        is_carried = low.view(np.uint64) < lows.view(np.uint64)
        high = (highs >> LOW_BITS) + is_carried.astype(np.int64)
        return xp.stack([low, high], axis=1)

    def ordered_sums(self, values: Array) -> Array:
        return self.backend.ordered_sums(values, self.ids, self.count)

    def extremes(self, values: Array, *, is_max: bool) -> Array:
        return self.backend.extremes(values, self.ids, self.count, is_max=is_max)


def groups_of(words: Array, backend: Backend) -> Groups:
    """The groups of rows with equal words."""
    xp = backend.xp
    leaders = backend.leaders(words)
    is_leader = leaders == xp.arange(len(leaders))
    numbers = xp.cumsum(is_leader.astype(np.int64)) - 1
    return Groups(backend, numbers[leaders], xp.flatnonzero(is_leader))


def key_words(keys: Sequence[DeviceColumn], count: int, backend: Backend) -> Array:
    """The keys of rows as lines of 64-bit numbers; nulls are bits of a line of their own."""
    xp = backend.xp
    lines = []
    is_null = xp.zeros(count, dtype=np.int64)
    for place, key in enumerate(keys):
        numbers = ordinals(key, backend).astype(np.int64)
        if key.valid is not None:
            numbers = xp.where(key.valid, numbers, np.int64(0))
            is_null = is_null | ((~key.valid).astype(np.int64) << np.int64(place))
        lines.append(numbers)
    has_nulls = any(key.valid is not None for key in keys)
    return xp.stack([*lines, is_null] if has_nulls or not lines else lines)


def fits_word(words: Array) -> Array:
    """The mask of 128-bit numbers that are 64-bit numbers."""
    return (words[:, 0] >> SIGN) == words[:, 1]
