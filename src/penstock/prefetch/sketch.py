"""Hot keys: a count-min sketch that forgets, and the threshold above which a key is hot.

A hot key is in memory anyway, so no hint is sent for it. The Scala twin is
`penstock.prefetch.CountMinSketch`, which answers the same vectors, `tests/vectors/cache.json`.
"""

from __future__ import annotations

from dataclasses import dataclass

ROWS = 4
WIDTH = 10_240
KEYS_TO_HALVE = 65_536
"""Keys counted after which every counter is halved, so that what was frequent once is forgotten."""

COUNT_MAX = 255
FIRST_SEED = 0x5EED
SECOND_SEED = 0xFEED

READS_MIN = 100
RAISE_ABOVE = 0.02
LOWER_BELOW = 0.005
WORD = 0xFFFFFFFF


class CountMinSketch:
    """Counters of keys that may be too high, never too low, but for the halving."""

    def __init__(self, threshold: int) -> None:
        self.threshold = threshold
        self._counters = bytearray(ROWS * WIDTH)
        self._keys = 0

    def is_hot(self, key: bytes) -> bool:
        """Count a key; whether all its counters are above the threshold."""
        if self._keys >= KEYS_TO_HALVE:
            self._keys = 0
            self._counters = bytearray(count >> 1 for count in self._counters)
        self._keys += 1
        counts = []
        for place in places(key):
            count = min(self._counters[place] + 1, COUNT_MAX)
            self._counters[place] = count
            counts.append(count)
        return min(counts) > self.threshold


def places(key: bytes) -> list[int]:
    """The counters of a key, one in each row."""
    first = murmur3(key, FIRST_SEED)
    second = murmur3(key, SECOND_SEED) | 1
    return [row * WIDTH + ((first + row * second) & WORD) % WIDTH for row in range(ROWS)]


@dataclass(frozen=True)
class HotBatch:
    """Reads and misses of a store in one batch, and the keys not hinted because they are hot."""

    reads: int
    misses: int
    suppressed: int


def tuned(threshold: int, start: int, batch: HotBatch) -> int:
    """The threshold after a batch: more keys are hinted where many reads miss.

    It is doubled where a fiftieth of the reads missed although keys were left out, and goes back
    towards `start` in eighths where hardly any did.
    """
    if batch.reads < READS_MIN:
        return threshold
    share = batch.misses / batch.reads
    if share > RAISE_ABOVE and batch.suppressed:
        return min(COUNT_MAX, threshold * 2)
    if share < LOWER_BELOW:
        return max(start, threshold - max(1, threshold // 8))
    return threshold


def murmur3(data: bytes, seed: int) -> int:
    """The 32-bit hash MurmurHash3 of some bytes."""
    whole = len(data) - len(data) % 4
    value = seed
    for at in range(0, whole, 4):
        value ^= _mixed(int.from_bytes(data[at : at + 4], "little"))
        value = (_rotated(value, 13) * 5 + 0xE6546B64) & WORD
    if whole < len(data):
        value ^= _mixed(int.from_bytes(data[whole:], "little"))
    value ^= len(data)
    value = ((value ^ (value >> 16)) * 0x85EBCA6B) & WORD
    value = ((value ^ (value >> 13)) * 0xC2B2AE35) & WORD
    return value ^ (value >> 16)


def _mixed(word: int) -> int:
    return _rotated((word * 0xCC9E2D51) & WORD, 15) * 0x1B873593 & WORD


def _rotated(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (32 - bits))) & WORD
