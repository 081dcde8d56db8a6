"""Runs the plan: at every cell the systems take turns, run by run, in processes kept for it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from penstock.errors import PenstockError
from penstock_lab.experiment.record import Noted
from penstock_lab.suites.commit.cells import Cell, Group, rotated
from penstock_lab.suites.commit.plan import Growth, Plan, Sustain
from penstock_lab.suites.commit.record import Kind, Measured, measured_of
from penstock_lab.suites.commit.rig import Bench, Open, Told, rigs
from penstock_lab.suites.sustain import Tried, how, is_sustained, next_rate

Tell = Callable[[str], None]
LATE = "void: late generator"


class Searched(msgspec.Struct, frozen=True):
    """The rates that were tried for one system at one cell."""

    cell: Cell
    system: str
    tried: tuple[Tried, ...]

    @property
    def held(self) -> int:
        return max((one.rate for one in self.tried if one.is_sustained), default=0)

    @property
    def failed(self) -> int:
        """The lowest rate that did not hold; 0 if all did."""
        return min((one.rate for one in self.tried if not one.is_sustained), default=0)


class Seat:
    """A system's place at the bench: its process, or why it has none."""

    def __init__(self, bench: Bench | None, error: str | None = None) -> None:
        self._bench = bench
        self._error = error
        self.is_warm = False

    def measure(self, cell: Cell, measure_s: float, warm_up_s: float) -> tuple[Noted, Told]:
        """What goes wrong is noted, also if there is no process or it cannot be replaced."""
        if self._bench is None:
            return Noted(error=self._error), Told()
        self.is_warm = True
        try:
            return self._bench.measure(cell, measure_s, warm_up_s)
        except PenstockError as error:
            self._bench, self._error = None, error.message
            return Noted(error=error.message), Told()


class Trial:
    """One execution of a plan. `runs` and `searched` grow as it goes and are whole after each."""

    def __init__(self, plan: Plan, folder: Path, tell: Tell, opening: Open | None = None) -> None:
        self.plan = plan
        self.runs: list[Measured] = []
        self.searched: list[Searched] = []
        self._folder = folder
        self._tell = tell
        self._open = opening or rigs()
        self._again_left = plan.again_max
        self._opened = 0

    def execute(self) -> None:
        """Everything; an interrupt leaves no process behind, and `runs` as far as it came."""
        place = Path(tempfile.mkdtemp(prefix="penstock-commit-", dir=self._folder))
        try:
            for group in self.plan.groups:
                self._compare(group, place)
            if self.plan.growth is not None:
                self._grow(self.plan.growth, place)
            if self.plan.sustain is not None:
                self._search(self.plan.sustain, place)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _compare(self, group: Group, place: Path) -> None:
        with contextlib.ExitStack() as closing:
            seats = {name: self._seat(closing, group, name, place) for name in group.systems}
            for repeat in range(self.plan.repeats):
                for number, cell in enumerate(group.cells):
                    for name in rotated(group.systems, repeat, number):
                        self._run(seats[name], cell, name, repeat)

    def _grow(self, growth: Growth, place: Path) -> None:
        for name, cell in growth.each:
            with contextlib.ExitStack() as closing:
                seat = self._seat(closing, Group((name,), (cell,)), name, place)
                self._tell(f"{cell.words}: {name}, {growth.seconds:g} s")
                self._keep(seat, cell, name, 0, growth.seconds, growth.warm_up_s, "growth")

    def _search(self, sustain: Sustain, place: Path) -> None:
        for cell in sustain.cells:
            for name in sustain.systems:
                with contextlib.ExitStack() as closing:
                    seat = self._seat(closing, Group((name,), (cell,)), name, place)
                    self._search_one(sustain, seat, cell, name)

    def _search_one(self, sustain: Sustain, seat: Seat, cell: Cell, name: str) -> None:
        tried: list[Tried] = []
        first, top, tries = sustain.rate_first, sustain.rate_max, sustain.tries_max
        while (rate := next_rate(tried, first, top, tries)) is not None:
            faster = msgspec.structs.replace(cell, rate=rate)
            self._tell(f"{faster.words}: does {name} hold it?")
            measure_s, warm_up_s = sustain.measure_s, sustain.warm_up_s
            one = self._keep(seat, faster, name, len(tried), measure_s, warm_up_s, "sustain")
            tried.append(Tried(rate, is_sustained(one.run), how(one.run)))
        self.searched.append(Searched(cell, name, tuple(tried)))

    def _seat(self, closing: contextlib.ExitStack, group: Group, name: str, place: Path) -> Seat:
        self._opened += 1
        folder = place / f"{self._opened}-{name}"
        try:
            return Seat(closing.enter_context(self._open(self.plan, group, name, folder)))
        except PenstockError as error:
            # A system that does not start is a result; the others go on.
            return Seat(None, error.message)

    def _warm_up_s(self, seat: Seat) -> float:
        # Only the first run of a process meets code that is not compiled yet.
        return self.plan.warm_up_s if seat.is_warm else self.plan.first_warm_up_s

    def _run(self, seat: Seat, cell: Cell, name: str, repeat: int) -> None:
        self._tell(f"{cell.words}: {name}, {repeat + 1} of {self.plan.repeats}")
        measure_s = self.plan.measured_s(cell)
        one = self._keep(seat, cell, name, repeat, measure_s, self._warm_up_s(seat))
        # A late sender is the machine's doing, not the system's: worth another try, within bounds.
        if one.run.verdict.kind == LATE and self._again_left > 0:
            self._again_left -= 1
            self._keep(seat, cell, name, repeat, measure_s, self.plan.warm_up_s)

    def _keep(
        self,
        seat: Seat,
        cell: Cell,
        name: str,
        repeat: int,
        measure_s: float,
        warm_up_s: float,
        kind: Kind = "compared",
    ) -> Measured:
        noted, told = seat.measure(cell, measure_s, warm_up_s)
        frame = self.plan.of(cell, name, measure_s=measure_s).frame(warm_up_s)
        one = measured_of(cell, name, repeat, noted, told, frame, kind)
        self.runs.append(one)
        return one
