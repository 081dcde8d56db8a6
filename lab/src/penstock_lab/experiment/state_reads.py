"""State reads of micro-batches: RocksDB's counters in Spark's progress, and our cache's. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

GETS = "rocksdbGetCount"
BLOCK_HITS = "rocksdbReadBlockCacheHitCount"
BLOCK_MISSES = "rocksdbReadBlockCacheMissCount"
SST_BYTES = "rocksdbSstFileSize"


class StateReads(msgspec.Struct, frozen=True):
    """RocksDB's counters up to a batch, or over some, of all stateful operators.

    Spark has them reset when a store is loaded, which for an aggregation is after its reads; they
    are totals only where `resetStatsOnLoad` is off.
    """

    batch: int
    gets: int = 0
    block_hits: int = 0
    block_misses: int = 0
    """Reads of a block that was not in RocksDB's own cache."""
    sst_bytes: int = 0
    """Size of the state on disk after the batch."""


def state_reads(progress: Mapping[str, Any]) -> StateReads:
    """The totals in a progress, as a mapping."""
    metrics = [operator.get("customMetrics") or {} for operator in progress["stateOperators"]]

    def total(name: str) -> int:
        return int(sum(metric.get(name, 0) for metric in metrics))

    return StateReads(
        int(progress["batchId"]),
        total(GETS),
        total(BLOCK_HITS),
        total(BLOCK_MISSES),
        total(SST_BYTES),
    )


def between(totals: Iterable[StateReads], first: int, last: int) -> StateReads:
    """The counters of batches `first` to `last`, the size that after the last of them."""
    before, until = StateReads(-1), StateReads(last)
    # While it waits for rows Spark reports the number of the batch to come: the last one counts.
    for reads in totals:
        if reads.batch < first:
            before = reads
        elif reads.batch <= last:
            until = reads
    return StateReads(
        last,
        max(until.gets - before.gets, 0),
        max(until.block_hits - before.block_hits, 0),
        max(until.block_misses - before.block_misses, 0),
        until.sst_bytes,
    )


class CacheReads(msgspec.Struct, frozen=True):
    """The cache in front of RocksDB, or of a look-up's store, over a stretch of a run."""

    hits: int = 0
    misses: int = 0
    waited: int = 0
    """Hits that waited for a fetch under way."""
    used: int = 0
    """Prefetched entries that a task came to read."""
    unused: int = 0
    suppressed: int = 0
    dropped: int = 0
    evictions: int = 0
    kept_writes: int = 0
    """Writes that stayed in the cache, to be written later."""
    path_us: int = 0
    """Time in which tasks read RocksDB themselves or waited for a fetch."""
    hint_bytes: int = 0
    shuffle_bytes: int = 0
    batches_on_path: int = 0
    """Micro-batches whose rows waited for a look-up."""
    lookup_batches: int = 0
    active: str = ""
    """The candidates that hinted at the end of the stretch; empty where none did."""
    moved_after: int = -1
    """The batch after which others had begun to hint."""
    reason: str = ""
    """Why those and no others."""
    batch: int = -1
    """The last batch of the stretch, where that is known."""

    @property
    def hit_ratio(self) -> float | None:
        return _share(self.hits, self.hits + self.misses)

    @property
    def unused_ratio(self) -> float | None:
        return _share(self.unused, self.used + self.unused)

    @property
    def hint_share(self) -> float | None:
        """Bytes of hints over bytes of the shuffle."""
        return _share(self.hint_bytes, self.shuffle_bytes)


AT_THE_END = ("active", "moved_after", "reason", "batch")
NUMBERS = [name for name in CacheReads.__struct_fields__ if name not in AT_THE_END]
"""Fields that add up from stretch to stretch."""


def summed(stretches: Sequence[CacheReads]) -> CacheReads:
    """Several stretches as one; what was at the end of it is that of the last."""
    if not stretches:
        return CacheReads()
    totals = {name: sum(getattr(each, name) for each in stretches) for name in NUMBERS}
    return msgspec.structs.replace(stretches[-1], **totals)


def less(totals: CacheReads, earlier: CacheReads) -> CacheReads:
    """The stretch from earlier totals to later ones."""
    numbers = {name: getattr(totals, name) - getattr(earlier, name) for name in NUMBERS}
    return msgspec.structs.replace(totals, **numbers)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
