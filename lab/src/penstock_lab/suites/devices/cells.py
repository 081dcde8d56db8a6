"""Cells of the devices suite: operations and sizes, workloads, traffic and rates.

`plans` has those of a command line.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import msgspec

from penstock.model.device_plans import OperationKind
from penstock_lab.experiment.systems import ALL_PROGRESS, system
from penstock_lab.experiment.together import Together, Traffic
from penstock_lab.suites.devices.modes import (
    LARGE_ONLY,
    MODES,
    QUICK_MODES,
    SEARCHED,
    TRIGGER_S,
)
from penstock_lab.suites.devices.workloads import WORKLOADS, Workload

PartName: TypeAlias = Literal["operations", "inflection", "latency", "rates"]
PARTS: tuple[PartName, ...] = get_args(PartName)
ON_SPARK: tuple[PartName, ...] = ("latency", "rates")
SPARK = "spark"
"""On the command line, both parts that run on it."""
KINDS: tuple[OperationKind, ...] = get_args(OperationKind)
KIB, MIB = 1 << 10, 1 << 20
SIZES = tuple(4 * KIB * 2**step for step in range(17))
"""4 KB to 256 MB, each twice the one before."""
QUICK_SIZES = SIZES[::2]
RATE_PAPER, RATE_HIGH = 1_000, 200_000
TRAFFIC: dict[str, Traffic] = {"constant": "constant", "random": "normal"}
SEARCHED_TRAFFIC = "random"
CORES_BESIDE = 4
"""Cores that are left to sender, server and reader."""
# Seconds on quiet cores: a run's costs besides what is sent, a process's to start, an operation's.
AROUND_S, START_S, OPERATION_S, LEARNED_S = 9.0, 15.0, 20.0, 25.0


class Cell(msgspec.Struct, frozen=True):
    """A workload in some traffic at a rate: what two modes are compared at."""

    workload: str
    traffic: str
    rate: int

    @property
    def name(self) -> str:
        """Name in figures: LR1S.constant@1000."""
        return f"{self.workload}.{self.traffic}@{self.rate}"

    @property
    def words(self) -> str:
        return f"{self.workload}, {self.traffic} traffic at {self.rate:,}/s"

    @property
    def is_papers(self) -> bool:
        """Whether the paper compares latencies at it."""
        return (self.traffic, self.rate) == ("constant", RATE_PAPER)


class Search(msgspec.Struct, frozen=True):
    """The search for the highest rate that holds, for each workload and mode."""

    modes: tuple[str, ...] = SEARCHED
    rate_first: int = RATE_HIGH
    rate_max: int = 1_600_000
    tries_max: int = 2
    """Tries beside the runs of the same traffic that were made already."""


class Plan(msgspec.Struct, frozen=True):
    """The plan: all that figures depend on; written into the result file as it is."""

    parts: tuple[PartName, ...]
    workloads: tuple[str, ...]
    modes: tuple[str, ...]
    traffic: tuple[tuple[str, int], ...]
    """Kinds of traffic with their rates, at which latencies are compared."""
    cores: int
    repeats: int = 1
    kinds: tuple[OperationKind, ...] = KINDS
    sizes: tuple[int, ...] = QUICK_SIZES
    """Bytes that go into an operation."""
    operation_s: float = 0.25
    """How long an operation of a size is repeated on a device, three times at least."""
    learned_batches: int = 100
    search: Search = Search()
    warm_up_s: float = 5.0
    first_warm_up_s: float = 12.0
    measure_s: float = 15.0
    drain_s: float = 20.0
    minutes_max: float | None = None
    """No run is begun that would end later."""
    again_max: int = 2
    """How many runs that are void, because the sender was late, are made once more."""
    skipped: str | None = None
    """Why nothing is measured; None: it is."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(
            Cell(workload, traffic, rate)
            for workload in self.workloads
            for traffic, rate in self.traffic
        )

    def modes_at(self, cell: Cell) -> tuple[str, ...]:
        """Modes that meet at a cell: at small batches a quick plan leaves some of them out."""
        if cell.rate > RATE_PAPER or self.modes != QUICK_MODES:
            return self.modes
        return tuple(name for name in self.modes if name not in LARGE_ONLY)

    @property
    def searched(self) -> tuple[str, ...]:
        return tuple(name for name in self.search.modes if name in self.modes)

    def conditions(self, cell: Cell, mode: str, *, is_first: bool) -> Together:
        """Conditions of one run; rows come until the last of those that count has been cut."""
        workload: Workload = WORKLOADS[cell.workload]
        return Together(
            (MODES[mode].part(workload, self.cores),),
            cell.rate,
            self.first_warm_up_s if is_first else self.warm_up_s,
            self.measure_s,
            tail_s=TRIGGER_S,
            # As fast as the clock: slides and triggers are seconds of both.
            event_speed=1.0,
            traffic=TRAFFIC[cell.traffic],
            stall_s=6 * TRIGGER_S,
            drain_s=self.drain_s,
            generator=workload.generator,
            deletes_streams=True,
        )

    @property
    def run_s(self) -> float:
        """Seconds that one run on Spark takes, about."""
        return self.warm_up_s + self.measure_s + TRIGGER_S + AROUND_S

    @property
    def run_s_max(self) -> float:
        """Seconds after which one that falls behind has ended, about."""
        return self.run_s + self.drain_s

    @property
    def steps(self) -> int:
        """Steps of the plan, at most, unless a run is made once more."""
        return 0 if self.skipped else self._on_machine + self._on_spark

    @property
    def _on_machine(self) -> int:
        return sum(part in self.parts for part in ("operations", "inflection")) * len(self.kinds)

    @property
    def _on_spark(self) -> int:
        compared = sum(len(self.modes_at(cell)) for cell in self.cells) * self.repeats
        searched = len(self.workloads) * len(self.searched) * self.search.tries_max
        return ("latency" in self.parts) * compared + ("rates" in self.parts) * searched

    @property
    def minutes(self) -> float:
        """Minutes the plan takes, about."""
        if self.skipped:
            return 0.0
        total = OPERATION_S * len(self.kinds) * ("operations" in self.parts)
        total += LEARNED_S * len(self.kinds) * ("inflection" in self.parts)
        if any(part in self.parts for part in ON_SPARK):
            total += START_S + self._on_spark * self.run_s
        minutes = total / 60
        return minutes if self.minutes_max is None else min(minutes, self.minutes_max)

    def settings(self) -> dict[str, Any]:
        """The plan and the Spark settings of each mode, for the result file."""
        spark = {name: MODES[name].conf_on(self.cores) for name in self.modes}
        built: dict[str, Any] = msgspec.to_builtins(self)
        return {**built, "system": {**system("penstock").conf, **ALL_PROGRESS}, "spark": spark}
