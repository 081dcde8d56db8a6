"""Runs of the commit suite: at every cell the systems take turns, in processes kept for it.

Then long runs, which show whether batches grow, and the search for the highest rate that holds.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from penstock_lab.experiment.batch_times import Timed, within
from penstock_lab.experiment.plan import WarmUp
from penstock_lab.experiment.record import Kind, Measured, as_columns, in_file, run_of
from penstock_lab.experiment.rig import Bench, Rig, Seat
from penstock_lab.experiment.search import searching
from penstock_lab.experiment.systems import ALL_PROGRESS, CHANGELOG_KEY, SAME_STORE
from penstock_lab.experiment.turns import Retries, Step, Steps, Tell, rotated, with_retry
from penstock_lab.suites.commit.cells import Cell, Group, Plan


class Record(Measured[Cell], frozen=True):
    """A run as the other suites keep it, and what only this one asks for."""

    batches: list[Timed] = msgspec.field(default_factory=list)
    """All that Spark reported, the warm-up's included."""
    took_ms: list[float] = msgspec.field(default_factory=list)
    """Of the batches with rows that ran in the measured stretch, in order."""
    steps: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    rss_mb: float | None = None

    @property
    def behind_batches(self) -> float | None:
        """Committed batches that the checkpoint location did not have yet at the end.

        None for a system that commits as Spark does. A run that is shorter than it takes to reach
        the bound of this looks better than a long one.
        """
        if "marker" not in self.steps:
            return None
        return self.steps["marker"]["count"] - self.steps.get("copy", {"count": 0.0})["count"]


def for_file(record: Record) -> dict[str, Any]:
    """A run for the result file, its batches as columns so that the file stays small."""
    return {
        **in_file(record.run),
        "kind": record.kind,
        "cell": record.cell.name,
        "batches": as_columns(Timed, record.batches),
        "measured_batches": len(record.took_ms),
        "steps": record.steps,
        "rss_mb": record.rss_mb,
        "behind_batches": record.behind_batches,
    }


Open: TypeAlias = Callable[[Plan, Group, str, Path], contextlib.AbstractContextManager[Bench]]


def conf_of(*, has_changelog: bool) -> dict[str, str]:
    """Settings beyond a system's: every batch remembered, the same files of state for all, and
    whether there is a changelog."""
    return {**ALL_PROGRESS, **SAME_STORE, CHANGELOG_KEY: str(has_changelog).lower()}


def rig(plan: Plan, group: Group, system: str, folder: Path) -> Rig:
    conf = conf_of(has_changelog=group.has_changelog)
    return Rig(system, folder, cores=plan.cores, conf=conf, tells_commits=True)


def measured(
    plan: Plan,
    seat: Seat,
    cell: Cell,
    system: str,
    repeat: int,
    measure_s: float,
    warm_up: WarmUp,
    kind: Kind = "compared",
) -> Record:
    """One run, its batches cut to the measured stretch."""
    conditions = plan.conditions(cell, measure_s, warm_up, system)
    noted = seat.run(conditions)
    took_ms: list[float] = []
    if noted.sender_report is not None:
        warm_ms = noted.measured_from_ms(conditions)
        inside = within(noted.batches, warm_ms, warm_ms + measure_s * 1000)
        # A policy holds the batch until it is to be cut, which is not the batch's time.
        took_ms = [
            batch.took_ms - (batch.admission_ms if conditions.options else 0.0) for batch in inside
        ]
    run = run_of(conditions, system, repeat, noted)
    return Record(cell, run, kind, noted.batches, took_ms, noted.steps, noted.rss_mb)


def runs(plan: Plan, folder: Path, _tell: Tell, opening: Open = rig) -> Steps[Record]:
    retries, opened = Retries(plan.again_max), itertools.count(1)

    def seat(closing: contextlib.ExitStack, group: Group, system: str) -> Seat:
        place = folder / f"{next(opened)}-{system}"
        return Seat.taken(closing, opening(plan, group, system, place))

    for group in plan.groups:
        with contextlib.ExitStack() as closing:
            seats = {system: seat(closing, group, system) for system in group.processes}
            seats |= {name: seats["default"] for name in group.systems if name not in seats}
            yield from _compare(plan, group, seats, retries)
    for system, cell in plan.growth.each if plan.growth else ():
        with contextlib.ExitStack() as closing:
            yield from _grow(plan, cell, system, seat(closing, Group((system,), (cell,)), system))
    pairs = itertools.product(plan.sustain.cells, plan.sustain.systems) if plan.sustain else ()
    for cell, system in pairs:
        with contextlib.ExitStack() as closing:
            at = partial(_at, plan, cell, system, seat(closing, Group((system,), (cell,)), system))
            assert plan.sustain is not None
            yield from searching(plan.sustain, at)


def _compare(plan: Plan, group: Group, seats: dict[str, Seat], retries: Retries) -> Steps[Record]:
    for repeat in range(plan.repeats):
        for number, cell in enumerate(group.cells):
            for system in rotated(group.systems_at(cell), repeat + number):
                seat = seats[system]
                first = plan.warm_up_at(cell, is_first=not seat.is_warm)
                again = plan.warm_up_at(cell, is_first=False)
                measure = partial(measured, plan, seat, cell, system, repeat, plan.measured_s(cell))
                yield from with_retry(
                    f"{cell.words}: {system}, {repeat + 1} of {plan.repeats}",
                    partial(measure, first),
                    partial(measure, again),
                    retries,
                )


def _grow(plan: Plan, cell: Cell, system: str, seat: Seat) -> Steps[Record]:
    assert plan.growth is not None
    seconds, warm_up = plan.growth.seconds, plan.growth.warm_up
    words = f"{cell.words}: {system}, {seconds:g} s"
    yield Step(words, partial(measured, plan, seat, cell, system, 0, seconds, warm_up, "growth"))


def _at(plan: Plan, cell: Cell, system: str, seat: Seat, rate: int, number: int) -> Step[Record]:
    assert plan.sustain is not None
    faster = msgspec.structs.replace(cell, rate=rate)
    seconds, warm_up = plan.sustain.measure_s, plan.sustain.warm_up
    measure = partial(measured, plan, seat, faster, system, number, seconds, warm_up, "sustain")
    return Step(f"{faster.words}: does {system} hold it?", measure)
