"""What a benchmark will do, as a value: who runs, in which order, for how long."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.errors import BadCall
from penstock.testing.delayed_store import STANDARD
from penstock_lab.experiment import systems
from penstock_lab.experiment.record import Frame
from penstock_lab.experiment.suites import SUITES, Suite
from penstock_lab.experiment.verdicts import Limits
from penstock_lab.queries.ads.ysb import REDIS
from penstock_lab.workloads.load import Load

LOCAL = "local"
STORES = (LOCAL, *STANDARD)


class Plan(msgspec.Struct, frozen=True):
    """Everything that figures depend on; written into the result file as it is."""

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
    stall_s: float = 8.0
    drain_s: float = 30.0
    """How long what was sent may take to be worked off after the last send."""
    tick_ms: int = 50
    files_tick_ms: int = 250
    """The same where rows go to files: Spark's file source pays for every file."""
    seed: int = 7
    cores: int = 2
    store: str = LOCAL
    """Where checkpoints are: local, or behind a declared delay."""
    again_max: int = 6
    """How many runs that are void, because the sender was late, are run once more."""
    again_until_s: float = 900.0
    """From when on none is, so that a busy machine does not make the whole take for ever."""
    redis: str | None = None
    """Where campaigns are looked up, for the suite that does so."""

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

    @property
    def described(self) -> Suite:
        return SUITES[self.suite]

    @property
    def limits(self) -> Limits:
        return Limits(stall_ms=self.stall_s * 1000)

    def rate_of(self, query: str) -> int:
        return self.rates.get(query, self.rate)

    def at(self, rate: int) -> Plan:
        """The same with every query at that rate."""
        return msgspec.structs.replace(self, rate=rate, rates={})

    def frame(self, warm_up_s: float) -> Frame:
        """What a run after so much warm-up is judged by."""
        base_ms = self.described.base_time_ms
        return Frame(warm_up_s, self.measure_s, base_ms, self.event_speed, self.limits)

    def load(
        self, query: str, streams: dict[str, str], warm_up_s: float, *, to_files: bool = False
    ) -> Load:
        """What the sender of one run sends."""
        return Load(
            self.described.workload,
            streams,
            self.rate_of(query),
            warm_up_s + self.measure_s,
            seed=self.seed,
            tick_ms=self.files_tick_ms if to_files else self.tick_ms,
            event_speed=self.event_speed,
        )

    def settings(self) -> dict[str, Any]:
        """For the result file: the plan, and the Spark settings of each system."""
        conf = {name: systems.system(name).conf for name in self.systems}
        return {**msgspec.to_builtins(self), "spark": conf}


class Turn(msgspec.Struct, frozen=True):
    """One Spark process: a system, which runs every query of the plan once."""

    repeat: int
    system: str


def turns(plan: Plan) -> list[Turn]:
    """Systems take turns within a repeat, and in who goes first."""
    order = []
    for repeat in range(plan.repeats):
        shift = repeat % len(plan.systems)
        rotated = (*plan.systems[shift:], *plan.systems[:shift])
        order += [Turn(repeat, system) for system in rotated]
    return order


def plan_of(
    suite: Suite,
    *,
    quick: bool = False,
    queries: tuple[str, ...] = (),
    chosen: tuple[str, ...] = (),
    rate: int | None = None,
    store: str = LOCAL,
    redis: str | None = None,
) -> Plan:
    """The plan of a command line; raises BadCall, with what there is, for a name that is not."""
    names = chosen or (systems.QUICK if quick else systems.FULL)
    wanted = suite.chosen(queries, quick=quick)
    return Plan(
        suite=suite.name,
        queries=wanted,
        systems=tuple(dict.fromkeys(names)),
        rate=rate if rate is not None else suite.rate,
        rates={name: suite.rates[name] for name in wanted if name in suite.rates and not rate},
        repeats=3 if quick else 5,
        event_speed=suite.event_speed,
        measure_s=8.0 if quick else 60.0,
        warm_up_s=3.0 if quick else 10.0,
        first_warm_up_s=6.0 if quick else 20.0,
        # A batch behind a delay takes seconds without anything being wrong.
        stall_s=8.0 if store == LOCAL else 20.0,
        again_until_s=900.0 if quick else 7_200.0,
        store=store,
        redis=redis or (REDIS if suite.name == "ysb" else None),
    )
