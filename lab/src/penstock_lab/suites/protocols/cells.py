"""Cells of the protocols suite: task graphs at commit intervals, which protocols, how long."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.errors import BadCall
from penstock_lab.baselines.task_graph.registry import GRAPHS, PROTOCOLS, Protocol
from penstock_lab.experiment import jetstream
from penstock_lab.experiment.plan import Conditions
from penstock_lab.measure.log_sizes import EMBEDDED, JETSTREAM
from penstock_lab.measure.task_graph_runs import NOTHING, Fill

LEVEL = "log"
INTERVALS_MS = (100, 50, 25, 10)
SHORTEST_MS = 10
RATES = {"q4": 2_000, "q8": 10_000}
"""Events of all kinds per second. Q8 reads four of fifty, Q4 forty-nine."""
# Starting the processes of a run, waiting until nothing more comes, and checking: seconds on quiet
# cores.
AROUND_S = 3.2


class Cell(msgspec.Struct, frozen=True):
    """A cell: what the protocols are compared at."""

    query: str
    interval_ms: int

    @property
    def name(self) -> str:
        return f"{LEVEL}.{self.query.upper()}.{self.interval_ms}ms"

    @property
    def words(self) -> str:
        return f"{self.query.upper()} every {self.interval_ms} ms"


class Plan(msgspec.Struct, frozen=True):
    """The plan: all that figures depend on; written into the result file as it is."""

    queries: tuple[str, ...]
    protocols: tuple[Protocol, ...]
    intervals_ms: tuple[int, ...]
    repeats: int
    measure_s: float
    warm_up_s: float
    rates: dict[str, int]
    log: str = JETSTREAM
    tick_ms: int = 10
    seed: int = 7
    quiet_s: float = 1.0
    drain_s: float = 15.0
    stall_s: float = 3.0
    again_max: int = 8
    """How many runs that are void, because the sender was late, are run once more."""
    fill: Fill = NOTHING
    """What every run finds in its state."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(Cell(query, ms) for query in self.queries for ms in self.intervals_ms)

    @property
    def steps(self) -> int:
        return self.repeats * len(self.cells) * len(self.protocols)

    @property
    def minutes(self) -> float:
        """About how long it takes where nothing has to be repeated."""
        return self.steps * (self.warm_up_s + self.measure_s + AROUND_S) / 60

    def conditions(self, query: str) -> Conditions:
        return Conditions(
            query,
            self.rates[query],
            self.warm_up_s,
            self.measure_s,
            stall_s=self.stall_s,
            drain_s=self.drain_s,
            tick_ms=self.tick_ms,
            seed=self.seed,
        )


def plan_of(
    *,
    quick: bool = False,
    queries: tuple[str, ...] = (),
    chosen: tuple[str, ...] = (),
    intervals_ms: tuple[int, ...] = (),
    rate: int | None = None,
    levels: tuple[str, ...] = (),
    log: str = JETSTREAM,
) -> Plan:
    """The plan of a command line; `levels` can only name the one there is."""
    for kind, names, choices in (
        ("task graph", queries, tuple(GRAPHS)),
        ("protocol", chosen, PROTOCOLS),
        ("log", (log,), (JETSTREAM, EMBEDDED)),
    ):
        for name in names:
            if name not in choices:
                raise BadCall(
                    f"there is no {kind} {name!r}; there is {', '.join(choices)}",
                    code="unknown_query",
                )
    graphs = tuple(queries or RATES)
    return Plan(
        graphs,
        tuple(name for name in PROTOCOLS if not chosen or name in chosen),
        intervals_ms or INTERVALS_MS,
        repeats=3 if quick else 5,
        measure_s=2.75 if quick else 30.0,
        warm_up_s=1.0 if quick else 5.0,
        rates={query: rate or RATES[query] for query in graphs},
        log=log,
    )


def settings(plan: Plan) -> dict[str, Any]:
    servers = jetstream.settings() if plan.log == JETSTREAM else {}
    return {LEVEL: {**msgspec.to_builtins(plan), "jetstream": servers}}
