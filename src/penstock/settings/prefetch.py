"""Settings of prefetching: `spark.penstock.prefetch` and below; the plug-in reads them in Scala."""

from __future__ import annotations

from penstock.settings.setting import MIB, Setting

KEY = "spark.penstock.prefetch"

PREFETCH = Setting(
    KEY,
    "state is read before the rows that need it arrive ([docs/prefetch.md](prefetch.md)). `A` to "
    "`D`: keys are hinted from this place of the plan. `auto`: from the place that the controller "
    "chooses. `off`: from none",
    None, "off", choices=("auto", "off", "A", "B", "C", "D"),
)  # fmt: skip
PREFETCH_CACHE = Setting(
    f"{KEY}.cache",
    "cache of state in front of RocksDB, by what is evicted first: `timestamp`: the oldest event "
    "time. `lru`: what was read longest ago. `clock`: the same, about. `off`: no cache. None: "
    "`timestamp` where `prefetch` is on, else `off`",
    None, None, choices=("timestamp", "lru", "clock", "off"),
)  # fmt: skip
PREFETCH_CACHE_BYTES = Setting(
    f"{KEY}.cache.bytes",
    "size of that cache, one for all stores of an executor; at most a quarter of its heap. The "
    "first store of an executor decides",
    "bytes", 64 * MIB, 1,
)  # fmt: skip
PREFETCH_CACHE_WRITES = Setting(
    f"{KEY}.cache.writes",
    "`through`: a write goes to RocksDB at once. `back`: it stays in the cache until it is "
    "evicted, scanned or committed",
    None, "through", choices=("through", "back"),
)  # fmt: skip
PREFETCH_THREADS = Setting(
    f"{KEY}.threads",
    "threads of an executor that fetch state; each reads one block after the other. The first "
    "store of an executor decides",
    "threads", 8, 1, 256,
)  # fmt: skip
PREFETCH_UNUSED_MAX = Setting(
    f"{KEY}.unused.max",
    "share of prefetched state that may stay unread before `auto` gives up a place of the plan",
    "%", 0, 0, 100,
)  # fmt: skip
PREFETCH_MARGIN = Setting(
    f"{KEY}.margin",
    "time that `auto` adds to the 99th percentile of reads of state, before it looks which places "
    "of the plan see a row early enough",
    "ms", 2, 0,
)  # fmt: skip
PREFETCH_HOT_THRESHOLD = Setting(
    f"{KEY}.hot.threshold",
    "a key counted more often than this in the last rows is hot and not hinted; where it starts: "
    "it is raised while hot keys miss, and lowered again. 255: no key is hot",
    "rows", 64, 1, 255,
)  # fmt: skip
PREFETCH_READS = Setting(
    f"{KEY}.reads",
    "how RocksDB reads its files. `spark`: as Spark has it. `direct`: past the operating system's "
    "cache. `slow1ms`: a read that needs a block waits 1 ms, to stand for a slower disk. The last "
    "two are for measurements",
    None, "spark", choices=("spark", "direct", "slow1ms"),
)  # fmt: skip

PREFETCH_SETTINGS = (
    PREFETCH,
    PREFETCH_CACHE,
    PREFETCH_CACHE_BYTES,
    PREFETCH_CACHE_WRITES,
    PREFETCH_THREADS,
    PREFETCH_UNUSED_MAX,
    PREFETCH_MARGIN,
    PREFETCH_HOT_THRESHOLD,
    PREFETCH_READS,
)
