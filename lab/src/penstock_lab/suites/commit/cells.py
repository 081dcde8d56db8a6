"""Cells of the commit suite: a query at a place, a rate and a pace; on which systems, how long.

`plans` has those of a command line.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock_lab.experiment import systems
from penstock_lab.experiment.plan import LOCAL, STORES, Conditions, WarmUp
from penstock_lab.experiment.query_sets import key_of, query_set_of

BACK_TO_BACK = 0.0
PAPER_TRIGGER_S = 3.0
MAIN_RATE = 2_500
LIGHT_RATE = 1_500
MAIN_QUERIES = ("lr_join_30_1", "cm_category_60_10")
QUERIES = (*MAIN_QUERIES, "lr_count_20_5", "cm_job_30_1")
PAPER_STORE = "remote20"
ZSTREAM = "zstream"
"""Runs where there is a trigger, which is its deadline: its policy cuts, not the trigger."""
FILES = "tuned+files"
"""Runs where the location is local: behind a delay it does what `tuned` does."""
PLUG_IN_SYNC = "plug-in-sync"
"""The same between files."""
REPLICATED = "full-replicated"
WITH_CHANGELOG = ("tuned", FILES, "asyncckpt", "full", REPLICATED)
WITHOUT = ("default", ZSTREAM, "asyncckpt", "full")
ON_FILES = ("tuned-files", PLUG_IN_SYNC, "plug-in")
SYSTEMS = ("default", ZSTREAM, *WITH_CHANGELOG, *ON_FILES)
SLOW_STORE = STORES[-1]
SLOW_FACTOR = 2.0
"""So much longer is a run where a batch of Spark's takes that much longer."""
SLOW_BATCHES = 3.0
"""So much longer a batch takes there, in the mean of the systems."""
# A run's costs besides warm-up and measurement, and a process's to start: seconds on quiet cores.
AROUND_S = 5.0
START_S = 10.0
BATCH_S = 0.35


class Cell(msgspec.Struct, frozen=True):
    """A cell is all but the system: what two systems are compared at."""

    query: str
    store: str
    every_s: float
    """The trigger interval; 0: a batch begins when the one before is done."""
    has_changelog: bool
    rate: int = MAIN_RATE

    @property
    def name(self) -> str:
        """Name in figures: QUERY.STORE.TRIGGER.CHANGELOG, and the rate if it is not the usual."""
        query = key_of(self.query)
        if self.rate != MAIN_RATE:
            query = f"{query}@{self.rate}"
        return f"{query}.{self.store}.{self.every_s:g}s.{'on' if self.has_changelog else 'off'}"

    @property
    def base_name(self) -> str:
        """The name without the changelog, in which steps of the ablation may differ."""
        return self.name.rpartition(".")[0]

    @property
    def is_back_to_back(self) -> bool:
        return self.every_s == BACK_TO_BACK

    @property
    def words(self) -> str:
        pace = "back to back" if self.is_back_to_back else f"every {self.every_s:g} s"
        changelog = "changelog" if self.has_changelog else "snapshots"
        return f"{key_of(self.query)} at {self.rate:,}/s, {self.store}, {pace}, {changelog}"


class Group(msgspec.Struct, frozen=True):
    """Cells that one Spark process per system runs; all of them agree on the changelog."""

    systems: tuple[str, ...]
    cells: tuple[Cell, ...]
    limited: tuple[tuple[str, tuple[Cell, ...]], ...] = ()
    """Systems that are run at some of the cells only, and at which."""

    @property
    def has_changelog(self) -> bool:
        return self.cells[0].has_changelog

    @property
    def processes(self) -> tuple[str, ...]:
        """Systems with a Spark process of their own: only the cut tells zstream from default."""
        is_shared = "default" in self.systems
        return tuple(name for name in self.systems if name != ZSTREAM or not is_shared)

    def systems_at(self, cell: Cell) -> tuple[str, ...]:
        """Systems that are run at a cell: back to back there is no deadline to keep."""
        limits = dict(self.limited)
        return tuple(
            name
            for name in self.systems
            if cell in limits.get(name, self.cells)
            and not (name == ZSTREAM and cell.is_back_to_back)
        )


class Growth(msgspec.Struct, frozen=True):
    """One long run of each, back to back: does a batch take longer as state files pile up?"""

    each: tuple[tuple[str, Cell], ...]
    """A system and where: `full` with a changelog, and Spark as it comes, which has none."""
    batches_min: int
    """So many batches of `full`; Spark as it comes makes as many as it can in the time."""
    seconds: float
    warm_up: WarmUp = WarmUp(60.0, 40)


class Sustain(msgspec.Struct, frozen=True):
    """The search for the highest rate that holds."""

    cells: tuple[Cell, ...]
    systems: tuple[str, ...] = ("tuned", "full")
    rate_first: int = 10_000
    rate_max: int = 320_000
    tries_max: int = 8
    measure_s: float = 60.0
    """Long enough for several batches of a slow system: whether latency rises is seen by them."""
    warm_up: WarmUp = WarmUp(30.0, 20)


class Plan(msgspec.Struct, frozen=True):
    """The plan: all that figures depend on; written into the result file as it is."""

    groups: tuple[Group, ...]
    repeats: int
    measure_s: float
    """Of a run back to back."""
    measure_batches: int
    """Of a run with a trigger interval: so many intervals."""
    warm_up: WarmUp
    first_warm_up: WarmUp
    """Of the first run of a process, which meets code that is not compiled yet."""
    paced_warm_up: WarmUp = WarmUp(20.0, 3, 8.0)
    """Of a run with a trigger interval: a batch takes as long there in every system."""
    growth: Growth | None = None
    sustain: Sustain | None = None
    left_out: tuple[str, ...] = ()
    """What the full run has and this one has not, in sentences."""
    cores: int = 2
    again_max: int = 6
    """How many runs that are void, because the sender was late, are run once more."""
    measure_s_min: float = 0.0
    """Of a run with a trigger interval, whatever number of them that is."""
    around_s: float = AROUND_S
    start_s: float = START_S

    def warm_up_at(self, cell: Cell, *, is_first: bool) -> WarmUp:
        """The warm-up of a run at a cell, be it the first one of its process."""
        if not cell.is_back_to_back:
            return self.paced_warm_up
        return self.first_warm_up if is_first else self.warm_up

    def measured_s(self, cell: Cell) -> float:
        if not cell.is_back_to_back:
            return max(self.measure_batches * cell.every_s, self.measure_s_min)
        return self.measure_s * (SLOW_FACTOR if cell.store == SLOW_STORE else 1.0)

    def conditions(
        self, cell: Cell, measure_s: float, warm_up: WarmUp, system: str = ""
    ) -> Conditions:
        is_cut = system == ZSTREAM
        options = {"deadline": f"{round(cell.every_s * 1000)}ms", "policy": ZSTREAM}
        return Conditions(
            cell.query,
            cell.rate,
            warm_up.most_s,
            measure_s,
            event_speed=query_set_of(cell.query).event_speed,
            # A batch behind a delay takes seconds without anything being wrong.
            stall_s=3 * cell.every_s + (8.0 if cell.store == LOCAL else 20.0),
            drain_s=60.0,
            store=cell.store,
            every_s=0.0 if is_cut else cell.every_s,
            options=options if is_cut else {},
            warm_up_batches=warm_up.batches,
            warm_up_least_s=warm_up.least_s,
        )

    @property
    def systems(self) -> tuple[str, ...]:
        used = {name for group in self.groups for name in group.systems}
        return tuple(name for name in SYSTEMS if name in used)

    @property
    def steps(self) -> int:
        """The most runs there can be, unless one is repeated."""
        compared = sum(len(g.systems_at(cell)) for g in self.groups for cell in g.cells)
        grown = len(self.growth.each) if self.growth else 0
        tried = 0
        if self.sustain:
            tried = len(self.sustain.cells) * len(self.sustain.systems) * self.sustain.tries_max
        return compared * self.repeats + grown + tried

    @property
    def minutes(self) -> float:
        """About how long it takes where nothing has to be repeated."""
        total = 0.0
        for group in self.groups:
            first_s = about_s(self.warm_up_at(group.cells[0], is_first=True), group.cells[0])
            total += len(group.processes) * (self.start_s + first_s)
            for cell in group.cells:
                warm_up_s = about_s(self.warm_up_at(cell, is_first=False), cell)
                run_s = warm_up_s + self.measured_s(cell) + cell.every_s
                total += len(group.systems_at(cell)) * self.repeats * (run_s + self.around_s)
        if self.growth:
            for _, cell in self.growth.each:
                run_s = about_s(self.growth.warm_up, cell) + self.growth.seconds
                total += self.start_s + run_s + self.around_s
        if self.sustain:
            for cell in self.sustain.cells:
                each_s = about_s(self.sustain.warm_up, cell) + self.sustain.measure_s
                search_s = self.start_s + self.sustain.tries_max * (each_s + self.around_s)
                total += len(self.sustain.systems) * search_s
        return total / 60

    def settings(self) -> dict[str, Any]:
        conf = {name: {**systems.system(name).conf, **systems.SAME_STORE} for name in self.systems}
        return {**msgspec.to_builtins(self), "spark": conf}


def about_s(warm_up: WarmUp, cell: Cell) -> float:
    """About how long a warm-up takes, for plans."""
    batch_s = max(cell.every_s, BATCH_S * (SLOW_BATCHES if cell.store == SLOW_STORE else 1.0))
    by_batches_s = min(warm_up.batches * batch_s, warm_up.most_s)
    return max(by_batches_s, warm_up.least_s) if warm_up.batches else warm_up.most_s
