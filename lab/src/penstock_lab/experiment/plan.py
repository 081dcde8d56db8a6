"""Plans as values: the conditions of a run, and queries by systems by repeats."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, Literal

import msgspec

from penstock.errors import BadCall
from penstock.testing.delayed_store import STANDARD
from penstock_lab.experiment import systems
from penstock_lab.experiment.query_sets import QuerySet, query_set_of
from penstock_lab.experiment.verdict import Limits
from penstock_lab.queries.ads.ysb import REDIS
from penstock_lab.workloads.load import Load

LOCAL = "local"
STORES = (LOCAL, *STANDARD)


class WarmUp(msgspec.Struct, frozen=True):
    """A warm-up by batches, in so many seconds at most and at least; by seconds without batches."""

    most_s: float
    batches: int = 0
    least_s: float = 0.0


class Conditions(msgspec.Struct, frozen=True):
    """Conditions that one run of one query is made under and judged by, whatever the system."""

    query: str
    rate: int
    """Events per second, of all streams of the generator together."""
    warm_up_s: float
    """How long it warms up, or at most, where it does so by batches."""
    measure_s: float
    event_speed: float = 1.0
    """Seconds of event time in a second."""
    stall_s: float = 8.0
    drain_s: float = 30.0
    """How long what was sent may take to be worked off after the last send."""
    tick_ms: int = 50
    files_tick_ms: int = 250
    """The same where rows go to files: Spark's file source pays for every file."""
    seed: int = 7
    store: str = LOCAL
    """Where checkpoints are: local, or behind a declared delay."""
    every_s: float = 0.0
    """The trigger interval; 0: a batch begins when the one before is done."""
    redis: str | None = None
    """Where campaigns are looked up, for the query that does so."""
    options: dict[str, str] = {}
    """Of every source: a deadline, a policy."""
    is_backlog: bool = False
    """Whether all rows are there before the query starts: then none is sent too late."""
    traffic: Literal["constant", "normal"] = "constant"
    """Normal: a new rate every second, about the mean."""
    generator: dict[str, Any] = {}
    """Options of the generator beyond its rate."""
    warm_up_batches: int = 0
    """Batches of every stage after which the measured stretch begins; 0: after `warm_up_s`."""
    warm_up_least_s: float = 0.0
    """How long it warms up at least, where it does so by batches."""

    @property
    def query_set(self) -> QuerySet:
        return query_set_of(self.query)

    @property
    def seconds(self) -> float:
        """The longest that the sender sends: it is cut short where the warm-up was shorter."""
        return self.warm_up_s + self.measure_s

    @property
    def limits(self) -> Limits:
        limits = Limits(stall_ms=self.stall_s * 1000)
        return msgspec.structs.replace(limits, lag_ms_p99=inf) if self.is_backlog else limits

    def load(self, streams: dict[str, str], *, to_files: bool = False) -> Load:
        """The load that the sender of the run sends."""
        return Load(
            self.query_set.workload,
            streams,
            self.rate,
            self.seconds,
            seed=self.seed,
            tick_ms=self.files_tick_ms if to_files else self.tick_ms,
            event_speed=self.event_speed,
            traffic=self.traffic,
            options=self.generator,
        )


def known(names: Sequence[str], choices: Sequence[str], refused: str, code: str) -> tuple[str, ...]:
    """The choices that are named, in any case, each once. Raises BadCall, `refused` with those
    that are unknown and followed by the choices, if any is."""
    spelled = {choice.lower(): choice for choice in choices}
    wanted = dict.fromkeys(name.lower() for name in names)
    unknown = [name for name in wanted if name not in spelled]
    if unknown:
        raise BadCall(f"{refused.format(', '.join(unknown))} {', '.join(choices)}", code=code)
    return tuple(spelled[name] for name in wanted)


class Plan(msgspec.Struct, frozen=True):
    """Queries of one set on some systems: everything that figures depend on, written into the
    result file as it is. What it shares with `Conditions` is explained there."""

    suite: str
    queries: tuple[str, ...]
    systems: tuple[str, ...]
    rate: int
    repeats: int
    event_speed: float
    measure_s: float
    rates: dict[str, int] = {}
    """Queries that have another rate."""
    warm_up_s: float = 4.0
    first_warm_up_s: float = 8.0
    """Warm-up of the first query of a process, which runs on code not compiled yet."""
    warm_up_batches: int = 0
    """Batches that end a warm-up earlier than these seconds, though not before `warm_up_least_s`;
    0: a warm-up is so many seconds."""
    first_warm_up_batches: int = 0
    warm_up_least_s: float = 0.0
    stall_s: float = 8.0
    drain_s: float = 30.0
    tick_ms: int = 50
    files_tick_ms: int = 250
    seed: int = 7
    cores: int = 2
    store: str = LOCAL
    again_max: int = 6
    """How many runs that are void, because the sender was late, are run once more."""
    again_until_s: float = 900.0
    redis: str | None = None

    def __post_init__(self) -> None:
        if self.store not in STORES:
            raise BadCall(
                f"there is no store {self.store!r}; there is {', '.join(STORES)}",
                code="unknown_store",
            )
        if self.rate < 1 or self.repeats < 1 or self.measure_s <= 0 or not self.queries:
            raise BadCall(
                "nothing would be measured; give a rate and repeats of 1 or more",
                code="bad_request",
            )
        for name in self.systems:
            systems.system(name)

    def rate_of(self, query: str) -> int:
        return self.rates.get(query, self.rate)

    def warm_up(self, *, is_first: bool) -> WarmUp:
        """The warm-up of a run, which is longer for the first one of a process."""
        if is_first:
            return WarmUp(self.first_warm_up_s, self.first_warm_up_batches, self.warm_up_least_s)
        return WarmUp(self.warm_up_s, self.warm_up_batches, self.warm_up_least_s)

    def conditions(
        self, query: str, warm_up_s: float, rate: int | None = None, warm_up_batches: int = 0
    ) -> Conditions:
        """The conditions of one run of a query; `rate` is the plan's unless given."""
        same = {name: getattr(self, name) for name in Conditions.__struct_fields__ if name in SAME}
        rate = self.rate_of(query) if rate is None else rate
        return Conditions(query, rate, warm_up_s, warm_up_batches=warm_up_batches, **same)

    def settings(self) -> dict[str, Any]:
        """For the result file: the plan, and the Spark settings of each system."""
        conf = {name: systems.system(name).conf for name in self.systems}
        return {**msgspec.to_builtins(self), "spark": conf}


SAME = {*Plan.__struct_fields__} & {*Conditions.__struct_fields__} - {
    "rate",
    "warm_up_s",
    "warm_up_batches",
}
"""What a run has from its plan."""


def plan_of(
    query_set: QuerySet,
    *,
    quick: bool = False,
    queries: tuple[str, ...] = (),
    chosen: tuple[str, ...] = (),
    rate: int | None = None,
    repeats: int | None = None,
    store: str = LOCAL,
    redis: str | None = None,
) -> Plan:
    """The plan of a command line; raises BadCall, with what there is, for a name that is not."""
    names = chosen or (systems.QUICK if quick else systems.FULL)
    wanted = query_set.chosen(queries, quick=quick)
    rates = query_set.rates
    return Plan(
        suite=query_set.name,
        queries=wanted,
        systems=tuple(dict.fromkeys(names)),
        rate=rate if rate is not None else query_set.rate,
        rates={name: rates[name] for name in wanted if name in rates and not rate},
        repeats=repeats or (3 if quick else 5),
        event_speed=query_set.event_speed,
        measure_s=8.0 if quick else 60.0,
        # Ends of what is broken: the slowest system makes its batches well before them.
        warm_up_s=40.0 if quick else 120.0,
        first_warm_up_s=120.0 if quick else 600.0,
        warm_up_batches=10 if quick else 30,
        first_warm_up_batches=40 if quick else 200,
        warm_up_least_s=3.0 if quick else 10.0,
        # A batch behind a delay takes seconds without anything being wrong.
        stall_s=8.0 if store == LOCAL else 20.0,
        again_until_s=900.0 if quick else 7_200.0,
        store=store,
        redis=redis or (REDIS if query_set.name == "ysb" else None),
    )
