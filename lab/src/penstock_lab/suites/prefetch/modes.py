"""Modes of the prefetch suite: settings that say what stands in front of RocksDB, and who hints.

All modes have our provider, our commit, the same memtables and the same budget of memory for state
that was read before. `off` gives all of it to RocksDB's block cache; with a cache of values RocksDB
keeps a megabyte of each store where that is at most a quarter, and the cache has the rest.
"""

from __future__ import annotations

from typing import Any

import msgspec

PREFETCH = "spark.penstock.prefetch"
ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
STORES = 2
"""State stores of a query: one for each shuffle partition, also of a join of state format 3."""
BLOCK_CACHE_MB, BLOCK_SHARE_MAX = 1, 0.25
"""Of each store, where values are cached in front of it; a budget too small for it has none."""
MIB = 2**20
THREADS = 8
LOOKUP_BYTES = 2 * MIB
"""Of a worker's cache: about a tenth of what a look-up can ask for."""
READS = {"read1ms": "slow1ms", "direct": "direct"}
"""How cold reads are made cold: a declared time for each, or past the operating system's cache."""
IN_MEMORY = {f"{PREFETCH}.reads": "spark"}


class Mode(msgspec.Struct, frozen=True):
    """A mode by its name in figures."""

    name: str
    words: str
    hints: str = "off"
    """Where keys are hinted from: nowhere, one place of the plan, or where the controller says."""
    cache: str = "timestamp"
    further: dict[str, str] = {}
    """Settings beyond these."""

    def conf(self, budget_mb: int, reads: str) -> dict[str, str]:
        """The settings of a Spark process that runs in this mode."""
        cache_mb = budget_mb - STORES * self.block_cache_mb(budget_mb)
        return {
            f"{ROCKSDB}.writeBufferSizeMB": "4",
            # Else RocksDB's counters of an aggregation begin after its reads.
            f"{ROCKSDB}.resetStatsOnLoad": "false",
            **self.blocks(budget_mb),
            f"{PREFETCH}.reads": READS[reads],
            f"{PREFETCH}.threads": str(THREADS),
            f"{PREFETCH}.cache.bytes": str(max(cache_mb, 1) * MIB),
            **self.of_query,
        }

    def block_cache_mb(self, budget_mb: int) -> int:
        """Blocks that RocksDB keeps of each store."""
        if self.cache == "off":
            return budget_mb // STORES
        return BLOCK_CACHE_MB if BLOCK_SHARE_MAX * budget_mb >= STORES * BLOCK_CACHE_MB else 0

    def blocks(self, budget_mb: int) -> dict[str, str]:
        """The same as a setting: stores that a query opens have it, in any mode's process."""
        return {f"{ROCKSDB}.blockCacheSizeMB": str(self.block_cache_mb(budget_mb))}

    @property
    def of_query(self) -> dict[str, str]:
        """Settings that a single query can have, in a process of another mode."""
        return {PREFETCH: self.hints, f"{PREFETCH}.cache": self.cache, **self.further}

    @property
    def lookup(self) -> dict[str, Any]:
        """Parameters of a query that looks its campaigns up, for the same policy."""
        # A batch's look-ups are one round trip already, so nothing is left to overlap.
        return {"cache": self.cache, "cache_bytes": LOOKUP_BYTES, "ahead": self.hints == "auto"}


OFF, LRU, CLOCK, OURS = "off", "lru", "clock", "prefetch"
ASYNCIO = "asyncio"
ASYNCIO_OF = {"asyncio-lru": LRU, "asyncio-clock": CLOCK}
"""The two that `asyncio` is the better of."""
THRESHOLDS = (16, 32, 128, 255)

MODES = {
    mode.name: mode
    for mode in (
        Mode(OFF, "RocksDB alone, all of the budget for its blocks", "off", "off"),
        Mode(LRU, "values in front of it, the one used longest ago goes first", "off", "lru"),
        Mode(CLOCK, "the same by clock", "off", "clock"),
        Mode("asyncio-lru", "fetched beside the task once it has the keys, lru", "D", "lru"),
        Mode("asyncio-clock", "the same, clock", "D", "clock"),
        Mode(OURS, "hinted where the controller says, by timestamp", "auto", "timestamp"),
        *(
            Mode(f"{OURS}-hot{hot}", f"the same, hot from {hot} on", "auto", "timestamp",
                 {f"{PREFETCH}.hot.threshold": str(hot)})
            for hot in THRESHOLDS
        ),
        Mode(f"{OURS}-lru", "ours without the order by timestamp", "auto", "lru"),
        *(Mode(f"{OURS}-{place}", f"ours hinted from {place} alone", place) for place in "ABCD"),
        Mode(f"{OURS}-back", "ours, writes kept back", "auto", "timestamp",
             {f"{PREFETCH}.cache.writes": "back"}),
    )
}  # fmt: skip
ABLATION = tuple(f"{OURS}-{part}" for part in ("lru", "A", "B", "C", "D", "back"))
FULL_MODES = (OFF, LRU, CLOCK, *ASYNCIO_OF, OURS)
QUICK_MODES = (LRU, "asyncio-lru", OURS)
"""`lru` works off a backlog, which its rate is taken from, and is not run at a rate."""
