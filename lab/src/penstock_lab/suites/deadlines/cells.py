"""Cells of the deadlines suite: queries, deadlines, traffic; and how long all of it takes."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock_lab.experiment import systems
from penstock_lab.experiment.together import Together, Traffic
from penstock_lab.suites.deadlines.modes import (
    BASELINES,
    HURRY,
    MODES,
    OURS,
    PROCESSES,
)

DEADLINES_S = (1.0, 5.0, 8.0, 10.0)
"""Of a full run; a quick one has the first two."""
QUERIES = ("lr_join_30_1", "lr_speed_30_1", "lr_count_30_1")
HIGH_SHARE, LOW_SHARE, SPARE_SHARE, BURST_SHARE = 0.9, 0.1, 0.7, 0.3
"""Of the rate that holds: high and low traffic, with spare, and around a burst."""
SHOCKS = {
    # Who is compared: what a user in a hurry runs meets a backlog as any fixed trigger does.
    "burst": ("sb-fair", HURRY, OURS),
    "backlog": (HURRY, OURS),
    "beside": ("sb-fair", OURS),
}
BURST_S = 5.0
CORES = 2
ALL = "all"
"""The query of a cell at which all of them run."""
SEARCHED_DEADLINES = 4
BESIDE_S = (1.0, 10.0)
BESIDE = ("lr_speed_30_1", "lr_join_30_1")
"""The query in a hurry, and the one that is not."""
BACKLOG_QUERY = "lr_speed_30_1"
# A run's costs besides warm-up and measurement, and a process's to start: seconds on quiet cores.
AROUND_S = 9.0
START_S = 14.0


TRAFFIC: dict[str, tuple[Traffic, float]] = {
    # How rows come, and the share of the rate that the better baseline sustains.
    "high": ("normal", HIGH_SHARE),
    "low": ("normal", LOW_SHARE),
    "constant_high": ("constant", HIGH_SHARE),
    "constant_low": ("constant", LOW_SHARE),
}


class Cell(msgspec.Struct, frozen=True):
    """A cell is all but the mode: what two modes are compared at."""

    query: str
    """One of the queries, or `all` of a run."""
    deadline_s: float
    traffic: str

    @property
    def name(self) -> str:
        """Name in figures: QUERY.DEADLINE.TRAFFIC."""
        return f"{self.query}.{self.deadline_s:g}s.{self.traffic}"

    @property
    def words(self) -> str:
        return f"{self.query}, {self.deadline_s:g} s, {self.traffic.replace('_', ' ')} traffic"


class Search(msgspec.Struct, frozen=True):
    """The search for the highest rate that holds."""

    rate_first: int
    rate_max: int = 16_000
    """The generator has vehicles for so many."""
    tries_max: int = 4


class Plan(msgspec.Struct, frozen=True):
    """The plan: all that figures depend on; written into the result file as it is."""

    modes: tuple[str, ...]
    deadlines_s: tuple[float, ...]
    traffics: tuple[str, ...]
    repeats: int
    measure_s: float
    """At least; longer where that is less than so many deadlines."""
    measure_deadlines: int
    warm_up_s: float
    """So long that the windows of a run are full when it is measured."""
    first_warm_up_s: float
    search: Search | None
    """None where the rate is given."""
    rate: int | None = None
    """The rate of high traffic, where it is given."""
    spare_repeats: int = 1
    shocks: tuple[str, ...] = tuple(SHOCKS)
    backlog_rows: int = 1_000_000
    burst_after_s: float = 15.0
    cores: int = CORES
    again_max: int = 4
    queries: tuple[str, ...] = QUERIES
    event_speed: float = 4.0
    around_s: float = AROUND_S
    start_s: float = START_S
    left_out: tuple[str, ...] = ()

    @property
    def longest_s(self) -> float:
        return max(self.deadlines_s)

    @property
    def searched(self) -> tuple[tuple[str, float], ...]:
        """Modes whose highest rate is looked for, each with its deadline: what high traffic is a
        share of, at the longest, and what traffic with spare is, at every deadline."""
        if self.search is None:
            return ()
        longest = [(mode, self.longest_s) for mode in (*BASELINES, OURS) if mode in self.modes]
        shorter = sorted(set(self.deadlines_s) - {self.longest_s}, reverse=True)
        return (*longest, *((OURS, bound) for bound in shorter if OURS in self.modes))

    def searched_s(self, deadline_s: float) -> float:
        """Seconds that a run of the search is measured: a rise is seen over several batches."""
        return max(self.measured_s(deadline_s), SEARCHED_DEADLINES * deadline_s)

    def measured_s(self, deadline_s: float) -> float:
        return max(self.measure_s, self.measure_deadlines * deadline_s)

    def deadlines_of(self, mode: str) -> tuple[float, ...]:
        """Deadlines a mode is run at: one that knows of none is run once, and held against all."""
        return (self.longest_s,) if MODES[mode].is_blind else self.deadlines_s

    def conditions(
        self,
        mode: str,
        deadline_s: float,
        traffic: str,
        rate: int,
        warm_up_s: float,
        measure_s: float | None = None,
    ) -> Together:
        """One run of all queries."""
        parts = tuple(MODES[mode].part(query, deadline_s) for query in self.queries)
        return Together(
            parts,
            rate,
            warm_up_s,
            measure_s or self.measured_s(deadline_s),
            tail_s=deadline_s,
            event_speed=self.event_speed,
            traffic=TRAFFIC[traffic][0],
            stall_s=4 * deadline_s + 15.0,
        )

    @property
    def compared_runs(self) -> list[tuple[str, float]]:
        """Mode and deadline of every run of a repeat at one kind of traffic."""
        return [(mode, bound) for mode in self.modes for bound in self.deadlines_of(mode)]

    def shock_modes(self, shock: str) -> tuple[str, ...]:
        return tuple(mode for mode in SHOCKS[shock] if mode in self.modes)

    @property
    def shock_runs(self) -> list[tuple[str, str]]:
        """Shock and mode of every run that has one."""
        return [(shock, mode) for shock in self.shocks for mode in self.shock_modes(shock)]

    @property
    def steps(self) -> int:
        """The most runs there can be, unless one is repeated."""
        tries = len(self.searched) * self.search.tries_max if self.search else 0
        spare = self.spare_repeats * len(self.deadlines_s) * (OURS in self.modes)
        compared = len(self.compared_runs) * len(self.traffics) * self.repeats
        return tries + compared + spare + len(self.shock_runs)

    @property
    def minutes(self) -> float:
        """About how long it takes where nothing has to be repeated."""
        each_s = self.warm_up_s + self.around_s
        compared_s = sum(each_s + self.measured_s(bound) + bound for _, bound in self.compared_runs)
        total = compared_s * len(self.traffics) * self.repeats
        if self.search is not None:
            total += self.search.tries_max * sum(
                each_s + self.searched_s(bound) + bound for _, bound in self.searched
            )
        if OURS in self.modes:
            spare_s = sum(each_s + self.measured_s(bound) + bound for bound in self.deadlines_s)
            total += self.spare_repeats * spare_s
        shock_s = each_s + self.measured_s(self.longest_s) + self.burst_after_s
        total += len(self.shock_runs) * shock_s
        processes = {MODES[mode].process for mode in self.modes}
        first_s = self.start_s + self.first_warm_up_s - self.warm_up_s
        return (total + len(processes) * first_s) / 60

    def settings(self) -> dict[str, Any]:
        modes = {mode: msgspec.to_builtins(MODES[mode]) for mode in self.modes}
        processes = {
            name: {**systems.system(system).conf, **conf}
            for name, (system, conf) in PROCESSES.items()
        }
        return {**msgspec.to_builtins(self), "modes": modes, "spark": processes}
