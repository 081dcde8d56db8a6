"""What the suite will do, as a value: queries, protocols, intervals, turns, and how long."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.errors import BadCall
from penstock_lab.baselines.task_graph.registry import GRAPHS, PROTOCOLS, Protocol
from penstock_lab.experiment import jetstream

INTERVALS_MS = (100, 50, 25, 10)
RATES = {"q4": 2_000, "q8": 10_000}
"""Events of all kinds per second. Q8 reads four of fifty, Q4 forty-nine."""
JETSTREAM, EMBEDDED = "jetstream", "embedded"
# Starting the processes of a run, waiting until nothing more comes, and checking: seconds on quiet
# cores.
AROUND_S = 3.2


class Cell(msgspec.Struct, frozen=True):
    """What the protocols are compared at."""

    query: str
    interval_ms: int

    @property
    def name(self) -> str:
        return f"{self.query.upper()}.{self.interval_ms}ms"

    @property
    def words(self) -> str:
        return f"{self.query.upper()} every {self.interval_ms} ms"


class Plan(msgspec.Struct, frozen=True):
    """Everything the figures depend on; written into the result file as it is."""

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
    """A run has ended when nothing new was seen for this long, and three intervals."""
    drain_s: float = 15.0
    stall_s: float = 3.0
    again_max: int = 8
    """How many runs that are void, because the sender was late, are run once more."""

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

    def settings(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return {**built, "jetstream": jetstream.settings() if self.log == JETSTREAM else {}}


def plan_of(
    *,
    quick: bool,
    queries: tuple[str, ...] = (),
    protocols: tuple[str, ...] = (),
    intervals_ms: tuple[int, ...] = (),
    rate: int | None = None,
    log: str = JETSTREAM,
) -> Plan:
    """Refuses a name that is not known, with those that are."""
    chosen = tuple(queries or RATES)
    for query in chosen:
        if query not in GRAPHS:
            raise _unknown("task graph", query, tuple(GRAPHS))
    systems = tuple(name for name in PROTOCOLS if not protocols or name in protocols)
    for name in protocols:
        if name not in PROTOCOLS:
            raise _unknown("protocol", name, PROTOCOLS)
    if log not in (JETSTREAM, EMBEDDED):
        raise _unknown("log", log, (JETSTREAM, EMBEDDED))
    return Plan(
        chosen,
        systems,
        intervals_ms or INTERVALS_MS,
        repeats=3 if quick else 5,
        measure_s=2.75 if quick else 30.0,
        warm_up_s=1.0 if quick else 5.0,
        rates={query: rate or RATES[query] for query in chosen},
        log=log,
    )


def _unknown(what: str, name: str, known: tuple[str, ...]) -> BadCall:
    return BadCall(
        f"there is no {what} {name!r}; there is {', '.join(known)}", code="unknown_query"
    )
