"""Cells of the paper suite: its two queries on Spark, and how long each is run.

`plans` has those of a command line.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock_lab.experiment import jetstream, systems
from penstock_lab.experiment.plan import Conditions, WarmUp
from penstock_lab.measure.log_sizes import JETSTREAM
from penstock_lab.measure.task_graph_runs import NOTHING
from penstock_lab.suites.paper.papers import PARTITIONS, RULE_INTERVAL_MS, TRIGGER_S
from penstock_lab.suites.protocols.cells import Plan as ProtocolsPlan

CM1, LR2 = "cm_category_60_10_complete", "lr_join_30_1_kept"
LABELS = {CM1: "CM1", LR2: "LR2"}
VEHICLES = 1_500_000
"""As many as are on the road at the highest rate that is tried, each reporting every 30 s."""
GENERATOR: dict[str, dict[str, Any]] = {CM1: {}, LR2: {"vehicles": VEHICLES}}
ZSTREAM, OURS = "zstream", "full"
PAPERS = ("default", ZSTREAM, "asyncckpt")
SYSTEMS = (*PAPERS, OURS)
STALL_S = 300.0
"""A baseline that falls behind shows nothing new for long: that is a result, not a fault."""
DRAIN_S = 60.0
# A run's costs besides sending, and a process's to start: seconds on quiet cores.
AROUND_S, START_S, BATCH_S = 8.0, 12.0, 0.7
WARMED_S = 1.0
"""The end of a run that warms a process up, of which nothing is measured."""


class Cell(msgspec.Struct, frozen=True):
    """A cell is all but the system: what two systems are compared at."""

    query: str
    rate: int
    """In the mean, events per second."""

    @property
    def name(self) -> str:
        """Name in figures; the rate of LR2 is found in the run and is a figure of its own."""
        label = LABELS[self.query]
        return label if self.query == LR2 else f"{label}@{self.rate}"

    @property
    def words(self) -> str:
        return f"{LABELS[self.query]} at {self.rate:,}/s, snapshots, every {TRIGGER_S:g} s"

    @property
    def has_latency(self) -> bool:
        """In complete mode most rows of a batch are those of windows long over."""
        return self.query != CM1


class Search(msgspec.Struct, frozen=True):
    """The search for what `default` and `full` sustain."""

    rate_first: int
    rate_max: int
    tries_max: int
    batches: int


class Batches(msgspec.Struct, frozen=True):
    """MiSA's part: queries on Spark, counted in batches."""

    queries: tuple[str, ...]
    rates: tuple[int, ...]
    """Of CM1."""
    systems: tuple[str, ...]
    repeats: int
    batches: int
    warm_up: int
    process_warm_up: WarmUp
    """Of a run back to back before a process is measured: Spark's code is compiled after it."""
    calibration: int
    """Batches whose checkpoints are measured."""
    search: Search
    lr2_systems: tuple[str, ...] = SYSTEMS
    """Of those, which run LR2."""
    partitions: int = PARTITIONS
    trigger_s: float = TRIGGER_S
    again_max: int = 6
    """How many runs that are void, because the sender was late, are run once more."""

    def systems_at(self, query: str) -> tuple[str, ...]:
        wanted = self.lr2_systems if query == LR2 else SYSTEMS
        return tuple(name for name in self.systems if name in wanted)

    def processes_at(self, query: str) -> tuple[str, ...]:
        """Systems with a Spark process of their own: only the cut tells zstream from default."""
        names = self.systems_at(query)
        return tuple(name for name in names if name != ZSTREAM or "default" not in names)

    def cells_of(self, query: str) -> tuple[Cell, ...]:
        """Cells of a query; the rate of LR2 is where the search for it begins."""
        rates = (self.search.rate_first,) if query == LR2 else self.rates
        return tuple(Cell(query, rate) for rate in rates)

    def conditions(
        self, cell: Cell, system: str, store: str, batches: int, warm_up: int
    ) -> Conditions:
        is_cut = system == ZSTREAM
        options = {"deadline": f"{round(self.trigger_s * 1000)}ms", "policy": ZSTREAM}
        return Conditions(
            cell.query,
            cell.rate,
            warm_up * self.trigger_s,
            batches * self.trigger_s,
            stall_s=STALL_S,
            drain_s=DRAIN_S,
            store=store,
            every_s=0.0 if is_cut else self.trigger_s,
            options=options if is_cut else {},
            traffic="normal",
            generator=GENERATOR[cell.query],
        )

    def warming(self, cell: Cell) -> Conditions:
        """A run that is not measured, batch after batch on the local disk."""
        return Conditions(
            cell.query,
            cell.rate,
            self.process_warm_up.most_s,
            WARMED_S,
            drain_s=DRAIN_S,
            generator=GENERATOR[cell.query],
            warm_up_batches=self.process_warm_up.batches,
            warm_up_least_s=self.process_warm_up.least_s,
        )

    @property
    def steps(self) -> int:
        """The most runs there can be, unless one is repeated."""
        searched = 2 * self.search.tries_max if LR2 in self.queries else 0
        compared = sum(
            len(self.systems_at(query)) * len(self.cells_of(query)) for query in self.queries
        )
        return len(self.queries) + searched + self.repeats * compared

    @property
    def minutes(self) -> float:
        """About how long it takes where nothing has to be repeated."""
        warm_up = self.process_warm_up
        warming_s = max(min(warm_up.batches * BATCH_S, warm_up.most_s), warm_up.least_s)
        start_s = START_S + warming_s + WARMED_S + AROUND_S
        total = 0.0
        for query in self.queries:
            runs = self.repeats * len(self.systems_at(query)) * len(self.cells_of(query))
            total += (1 + len(self.processes_at(query))) * start_s
            total += self._run_s(self.calibration) + runs * self._run_s(self.batches)
            if query == LR2:
                # As a rule one try is enough to know that `full` holds what it has to.
                total += (self.search.tries_max + 1) * self._run_s(self.search.batches)
        return total / 60

    def _run_s(self, batches: int) -> float:
        return (self.warm_up + batches) * self.trigger_s + AROUND_S


class Recovery(msgspec.Struct, frozen=True):
    """The recovery of Q8's tasks, cold and warm."""

    seconds: int
    rate: int
    commit_ms: int = 100
    checkpoint_s: int = 10
    recoveries: int = 3

    @property
    def options(self) -> dict[str, Any]:
        return {**msgspec.to_builtins(self), "has_warm": True}


class Graphs(msgspec.Struct, frozen=True):
    """Impeller's part: task graphs without Spark."""

    protocols: ProtocolsPlan
    """Its rates are those that the rule chooses, unless they are given."""
    rungs: dict[str, tuple[int, ...]]
    """Rates from the smallest up, by query, for the rule to choose from; none where it is given."""
    rule_s: float
    recovery: Recovery | None

    def rung(self, query: str, rate: int) -> ProtocolsPlan:
        """The runs at one rate that the rule looks at."""
        return msgspec.structs.replace(
            self.protocols,
            queries=(query,),
            protocols=("marker", "transaction"),
            intervals_ms=(RULE_INTERVAL_MS,),
            repeats=1,
            measure_s=self.rule_s,
            rates={query: rate},
            fill=NOTHING,
        )

    @property
    def steps(self) -> int:
        tried = sum(len(rates) for rates in self.rungs.values())
        return 2 * tried + self.protocols.steps + (self.recovery is not None)

    @property
    def minutes(self) -> float:
        rules = (self.rung(query, rate) for query in self.rungs for rate in self.rungs[query])
        fill_s = self.protocols.steps * (8.0 if self.protocols.fill.seconds else 0.0)
        recovery_s = 20.0 + self.recovery.seconds / 8 if self.recovery else 0.0
        total = sum(rule.minutes for rule in rules) + self.protocols.minutes
        return total + (fill_s + recovery_s) / 60


class Plan(msgspec.Struct, frozen=True):
    """The plan: all that figures depend on; written into the result file as it is."""

    batches: Batches | None
    graphs: Graphs | None
    left_out: tuple[str, ...] = ()
    """What the full run has and this one has not, in sentences."""

    @property
    def parts(self) -> tuple[Batches | Graphs, ...]:
        return tuple(part for part in (self.batches, self.graphs) if part is not None)

    @property
    def steps(self) -> int:
        return sum(part.steps for part in self.parts)

    @property
    def minutes(self) -> float:
        return sum(part.minutes for part in self.parts)

    def settings(self) -> dict[str, Any]:
        names = self.batches.systems if self.batches else ()
        is_remote = self.graphs is not None and self.graphs.protocols.log == JETSTREAM
        return {
            **msgspec.to_builtins(self),
            "spark": {name: systems.system(name).conf for name in names},
            "jetstream": jetstream.settings() if is_remote else {},
        }
