"""Runs a plan: systems take turns, every run is judged, and what was measured is always kept."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import PenstockError
from penstock_lab.experiment.checks import Check, with_oracle
from penstock_lab.experiment.plan import Plan, Turn, turns
from penstock_lab.experiment.record import Noted, Run, run_of
from penstock_lab.experiment.rig import Rig
from penstock_lab.experiment.suites import only_log
from penstock_lab.experiment.systems import system
from penstock_lab.experiment.verdicts import Verdict
from penstock_lab.queries import named

Tell = Callable[[str], None]
"""Called with what is about to run, once per run."""


class Bench(Protocol):
    """What a system is run on; `Rig` is the real one."""

    def run(self, query_name: str, warm_up_s: float, rate: int | None = None) -> Noted: ...


Open = Callable[[Plan, str, Path], contextlib.AbstractContextManager[Bench]]


def rigs(check: Check = with_oracle) -> Open:
    """Real ones; a test passes a check, or something else that opens, of its own."""
    return lambda plan, name, folder: Rig(plan, name, folder, check)


class Harness:
    """One execution of a plan. `runs` grows as it goes and is whole after every run."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        tell: Tell,
        opening: Open | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.plan = plan
        self.runs: list[Run] = []
        self.skipped = skipped(plan)
        self._folder = folder
        self._tell = tell
        self._open = opening or rigs()
        self._again_left = plan.again_max
        self._clock = clock
        self._began_s = clock.monotonic_s()

    @property
    def steps(self) -> int:
        """How often `tell` will be called, unless a run is repeated."""
        return sum(len(self._queries(turn)) for turn in turns(self.plan))

    def execute(self) -> None:
        """Every turn; an interrupt leaves no process behind, and `runs` as far as it came."""
        place = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=self._folder))
        try:
            for turn in turns(self.plan):
                self._take(turn, place / f"{turn.system}-{turn.repeat}")
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _queries(self, turn: Turn) -> list[str]:
        left_out = {query for name, query, _ in self.skipped if name == turn.system}
        return [query for query in self.plan.queries if query not in left_out]

    def _take(self, turn: Turn, folder: Path) -> None:
        queries = self._queries(turn)
        if not queries:
            return
        try:
            with self._open(self.plan, turn.system, folder) as bench:
                for number, query in enumerate(queries):
                    self._run(bench, turn, query, is_first=number == 0)
        except PenstockError as error:
            # A system that does not start is a result; the others go on.
            done = {run.query for run in self.runs if (run.system, run.repeat) == _key(turn)}
            for query in queries:
                if query not in done:
                    self._keep(turn, query, Noted(error=error.message), self.plan.warm_up_s)
        shutil.rmtree(folder, ignore_errors=True)

    def _run(self, bench: Bench, turn: Turn, query: str, *, is_first: bool) -> None:
        warm_up_s = self.plan.first_warm_up_s if is_first else self.plan.warm_up_s
        self._tell(f"{query} on {turn.system}, {turn.repeat + 1} of {self.plan.repeats}")
        run = self._keep(turn, query, bench.run(query, warm_up_s), warm_up_s)
        # A late sender is the machine's doing, not the system's: worth another try, within bounds.
        if run.verdict.kind == "void: late generator" and self._may_run_again():
            self._again_left -= 1
            self._keep(turn, query, bench.run(query, self.plan.warm_up_s), self.plan.warm_up_s)

    def _may_run_again(self) -> bool:
        took_s = self._clock.monotonic_s() - self._began_s
        return self._again_left > 0 and took_s < self.plan.again_until_s

    def _keep(self, turn: Turn, query: str, noted: Noted, warm_up_s: float) -> Run:
        rate, frame = self.plan.rate_of(query), self.plan.frame(warm_up_s)
        run = run_of(query, turn.system, turn.repeat, rate, noted, frame)
        self.runs.append(run)
        return run


def _key(turn: Turn) -> tuple[str, int]:
    return turn.system, turn.repeat


def skipped(plan: Plan) -> list[tuple[str, str, str]]:
    """System, query and reason of what cannot be run."""
    found = []
    for name in plan.systems:
        for query in plan.queries:
            why = only_log(named(query)) if system(name).rows == "files" else None
            if why is not None:
                found.append((name, query, why))
    return found


def verdicts(runs: list[Run]) -> list[tuple[Run, Verdict]]:
    """The runs that do not count, with why."""
    return [(run, run.verdict) for run in runs if not run.is_counted]
