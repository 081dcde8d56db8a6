"""Cells of the prefetch suite: a query, cold reads of a kind, a rate; which modes meet there.

`plans` has those of a command line.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from penstock_lab.experiment import systems
from penstock_lab.experiment.query_sets import key_of
from penstock_lab.queries.ads.ysb import REDIS
from penstock_lab.suites.prefetch.modes import ASYNCIO, ASYNCIO_OF, MODES

Level: TypeAlias = Literal["high", "low"]
ROCKSDB_QUERIES = ("q18", "q19", "q20")
LOOKUP_QUERIES = ("ysb", "q13")
QUERIES = (*ROCKSDB_QUERIES, *LOOKUP_QUERIES)
QUICK_QUERIES = ("q18", "q20", "ysb")
OVERHEAD_QUERY = "q18"
SYSTEM = "penstock"
MAIN_PARTS = ("rates", "overhead", "adaptation")
SWEEPS = ("skews", "caches", "thresholds", "ablation")
PARTS = (*MAIN_PARTS, *SWEEPS)
LOAD_SHARE = 0.7
"""Of the rate at which a mode works off a backlog."""
HOT_SHARE = 0.5
SKEWS = (0.1, 0.3, 0.7, 0.9)
"""Beside `HOT_SHARE`: the share of bids on the hot auction."""
CACHES = (0.25, 0.5, 2.0)
"""Beside the whole budget: cache sizes as shares of it."""
ADS = {"ads_per_campaign": 1_000, "zipf": 1.0}
SIDE_INPUT_ROWS = 100_000
BUDGET_MB = 8
BATCHES_MIN = 100
"""Batches with rows that a p99.9 needs."""
BATCHES_SPARE, QUICK_BATCHES_SPARE = 20, 8
"""Measured beyond these: a batch may have no rows."""
CORES = 2
FILL_SHARES = {"q20": 0.5, "kept_bids": 0.5}
"""Of the events that fill a state, where fewer are enough for ten times the budget."""


class Workload(msgspec.Struct, frozen=True):
    """A query with all that decides about its reads, but neither mode nor rate."""

    query: str
    reads: str = "read1ms"
    hot_share: float = HOT_SHARE
    cache_share: float = 1.0
    """Of the budget."""
    series: str = ""
    """Named where the same is run once more beside other modes."""

    @property
    def is_lookup(self) -> bool:
        return self.query in LOOKUP_QUERIES

    @property
    def is_main(self) -> bool:
        """Whether the headline is about it."""
        return (self.hot_share, self.cache_share, self.series) == (HOT_SHARE, 1.0, "")

    @property
    def name(self) -> str:
        """Name in figures: QUERY.READS, then what is not as usual."""
        parts = [key_of(self.query)]
        parts += [] if self.is_lookup else [self.reads]
        parts += [f"hot{self.hot_share * 100:.0f}"] if self.hot_share != HOT_SHARE else []
        parts += [f"cache{self.cache_share * 100:.0f}"] if self.cache_share != 1.0 else []
        return ".".join([*parts, *([self.series] if self.series else [])])

    @property
    def budget_mb(self) -> int:
        return round(BUDGET_MB * self.cache_share)


class Cell(msgspec.Struct, frozen=True):
    """A workload at a rate; `rate` is said in words and in the file, and not part of the name."""

    workload: Workload
    level: Level = "high"
    rate: int = 0

    @property
    def query(self) -> str:
        return self.workload.query

    @property
    def name(self) -> str:
        return f"{self.workload.name}.{self.level}"

    @property
    def words(self) -> str:
        return f"{self.name} at {self.rate:,}/s" if self.rate else self.name


class Group(msgspec.Struct, frozen=True):
    """Workloads that one Spark process per mode runs: all agree on reads and budget."""

    workloads: tuple[Workload, ...]
    modes: tuple[str, ...]
    levels: tuple[Level, ...]
    """Rates at which modes are compared; none: they only work off a backlog."""
    rated: tuple[str, ...]
    """Modes that are run at rates."""
    part: str = "rates"
    guests: dict[str, str] = {}
    """Modes that run in the process of another one."""

    @property
    def reads(self) -> str:
        return self.workloads[0].reads

    @property
    def budget_mb(self) -> int:
        return self.workloads[0].budget_mb

    @property
    def shown(self) -> tuple[str, ...]:
        """Systems at a rate: the two that fetch beside the task are one there."""
        names = dict.fromkeys(ASYNCIO if name in ASYNCIO_OF else name for name in self.rated)
        return tuple(names)

    @property
    def processes(self) -> tuple[str, ...]:
        """Modes with a process of their own."""
        return tuple(mode for mode in self.modes if mode not in self.guests)

    def backlogs(self, repeats: int) -> tuple[tuple[str, ...], ...]:
        """Modes that work off a backlog, repeat by repeat: one that is not rated does so once."""
        return (self.modes, *(tuple(m for m in self.modes if m in self.rated),) * (repeats - 1))


class Plan(msgspec.Struct, frozen=True):
    """The plan: all that figures depend on; written into the result file as it is."""

    groups: tuple[Group, ...]
    parts: tuple[str, ...]
    repeats: int
    backlog_repeats: int
    batches: int = BATCHES_MIN + BATCHES_SPARE
    warm_batches: int = 20
    seconds_max: float = 75.0
    backlog_events: int = 80_000
    backlog_rows_max: int = 8_000
    fill_events: int = 850_000
    """Events whose bids are part of the filled state: so many that Q18 has 315,000 pairs of a
    bidder and an auction, of 300 bytes each, eleven times the budget."""
    auctions: int = 200_000
    """Auctions that bids may go to, all of them opened before."""
    overhead_turns: int = 7
    """Turns that count, of each of the two."""
    overhead_events: int = 120_000
    rate: int | None = None
    """Given for all; then no backlog is worked off to find one."""
    redis: str = REDIS
    cores: int = CORES
    seed: int = 7
    again_max: int = 4
    """How many runs that are void, because the sender was late, are run once more."""
    left_out: tuple[str, ...] = ()
    """Parts of the full run that this one has not, in sentences."""

    @property
    def batches_min(self) -> int:
        """Batches with rows that a run must have."""
        return min(self.batches, BATCHES_MIN)

    @property
    def workloads(self) -> tuple[Workload, ...]:
        return tuple(dict.fromkeys(each for group in self.groups for each in group.workloads))

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(workload.query for workload in self.workloads))

    @property
    def modes(self) -> tuple[str, ...]:
        """Systems in the order of tables."""
        names = {name for group in self.groups for name in (*group.modes, *group.shown)}
        return tuple(name for name in (*MODES, ASYNCIO) if name in names)

    def generator(self, workload: Workload) -> dict[str, Any]:
        """Options of the generator; hot auction and bidder stay the same, so pairs come again."""
        if workload.query == "ysb":
            return ADS
        return {
            "auctions_in_flight": self.auctions,
            "people_active": self.auctions // 3,
            "hot_auction_every": 100_000_000,
            "hot_person_every": 100_000_000,
            "bid_bytes": 200,
            "hot_auction_share": workload.hot_share,
        }

    def fill_events_of(self, workload: Workload) -> int:
        """Events that fill the state of a workload; a query that looks up elsewhere has none."""
        if workload.is_lookup:
            return 0
        return round(self.fill_events * FILL_SHARES.get(workload.query, 1.0))

    @property
    def rated_groups(self) -> tuple[Group, ...]:
        """Groups whose modes work off backlogs and are compared at rates."""
        return tuple(group for group in self.groups if group.part in self.parts)

    def backlogs_of(self, group: Group) -> tuple[tuple[str, ...], ...]:
        """Modes of each repeat of the backlogs; none where the rate is given."""
        return () if self.rate else group.backlogs(self.backlog_repeats)

    @property
    def steps(self) -> int:
        """Steps of the plan, at most, unless a run is made once more."""
        count = 0
        for group in self.rated_groups:
            backlogs = sum(len(modes) for modes in self.backlogs_of(group))
            rated = len(group.levels) * len(group.shown) * self.repeats
            count += len(group.workloads) * (1 + backlogs + rated)
        count += 2 * (self.overhead_turns + 1) if "overhead" in self.parts else 0
        return count + ("adaptation" in self.parts)

    def settings(self) -> dict[str, Any]:
        """The plan and the Spark settings of each mode, for the result file."""
        spark = {
            f"{group.reads}.{group.budget_mb}MB": {
                name: MODES[name].conf(group.budget_mb, group.reads) for name in group.modes
            }
            for group in self.groups
        }
        built: dict[str, Any] = msgspec.to_builtins(self)
        return {**built, "system": systems.system(SYSTEM).conf, "spark": spark}
