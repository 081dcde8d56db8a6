"""Runs of the paper suite on Spark: a store is calibrated, a rate found, then systems take turns.

For each query

1. `default` runs on a store of a known delay, which tells the bytes and the time of a checkpoint;
2. processes start that know the store made from that, and each runs back to back for a while;
3. LR2's rate is found: what `default` sustains, and whether `full` sustains enough more;
4. the systems take turns at every rate, also in who goes first.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.plan import Conditions
from penstock_lab.experiment.record import (
    Kind,
    Measured,
    as_columns,
    in_file,
    run_of,
    with_batch_slope,
)
from penstock_lab.experiment.rig import Bench, Rig, Seat
from penstock_lab.experiment.search import Tried, searching
from penstock_lab.experiment.systems import (
    ALL_PROGRESS,
    CHANGELOG_KEY,
    FORMAT_KEY,
    NOT_COUNTED,
)
from penstock_lab.experiment.turns import Retries, Step, Steps, rotated, with_retry
from penstock_lab.suites.paper.cells import LR2, OURS, Batches, Cell
from penstock_lab.suites.paper.papers import OVER_DEFAULT, UNDER_FULL
from penstock_lab.suites.paper.store import MEASURED_ON, SCHEME, Calibration, calibrated

SNAPSHOTS = {**ALL_PROGRESS, CHANGELOG_KEY: "false", **NOT_COUNTED, FORMAT_KEY: "2"}
"""Every batch is remembered, and commits its state as a snapshot. All systems write the same format
and count no rows, so that they differ in the commit alone."""


class Record(Measured[Cell], frozen=True):
    """A run as the other suites keep it, and what only this one asks for."""

    batches: list[Timed] = msgspec.field(default_factory=list)
    """All that Spark reported, the warm-up's included."""
    measured: list[Timed] = msgspec.field(default_factory=list)
    """Those with rows after the warm-up, as many as were to be measured; their times without the
    wait for a cut."""
    steps: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    rss_mb: float | None = None
    cpu_s: float | None = None
    """Of driver and server in the measured stretch, which is `seconds` long."""
    seconds: float = 0.0
    snapshot_bytes: list[int] = msgspec.field(default_factory=list)

    @property
    def took_ms(self) -> list[float]:
        return [batch.took_ms for batch in self.measured]

    def calibration(self, partitions: int) -> Calibration | None:
        """The store that follows from this run."""
        commits_ms = [batch.state_ms for batch in self.measured]
        return calibrated(commits_ms, self.snapshot_bytes, partitions)

    @property
    def is_bound(self) -> bool:
        """Whether the query fell so far behind that its input was never worked off. What batches
        took until then is a lower bound of what they take."""
        return self.run.verdict.kind == "stalled" and bool(self.measured)


def for_file(record: Record) -> dict[str, Any]:
    """A run for the result file, its batches as columns so that the file stays small."""
    return {
        **in_file(record.run),
        "kind": record.kind,
        "cell": record.cell.name,
        "batches": as_columns(Timed, record.batches),
        "measured_batches": len(record.measured),
        "is_bound": record.is_bound,
        "steps": record.steps,
        "rss_mb": record.rss_mb,
        "cpu_s": record.cpu_s,
        "seconds": record.seconds,
        "snapshot_bytes": record.snapshot_bytes,
    }


Open: TypeAlias = Callable[
    [Batches, str, Path, Mapping[str, str]], contextlib.AbstractContextManager[Bench]
]


def rig(plan: Batches, system: str, folder: Path, conf: Mapping[str, str]) -> Rig:
    """A Spark process with as many tasks at once as there are partitions: tasks that wait for the
    store wait together, as they did on the paper's machines."""
    settings = {**SNAPSHOTS, **conf}
    return Rig(system, folder, cores=plan.partitions, conf=settings, tells_commits=True)


def measured(
    plan: Batches, seat: Seat, conditions: Conditions, cell: Cell, system: str, repeat: int,
    kind: Kind = "compared",
) -> Record:  # fmt: skip
    """One run, after one back to back if its process has not run anything yet; then its warm-up
    is said to have had the batches of that one."""
    warming = None if seat.is_warm else plan.warming(cell)
    warmed = None if warming is None else seat.run(warming)
    noted = seat.run(conditions)
    # Batches are few and long: a line through what is seen at every moment would rise by itself.
    run = with_batch_slope(run_of(conditions, system, repeat, noted), conditions, noted)
    if warming is not None and warmed is not None:
        run = msgspec.structs.replace(
            run,
            warm_up_batches=warmed.warm_up_batches,
            warm_up_batches_asked=warming.warm_up_batches,
        )
    warm_up, count = (
        round(seconds / plan.trigger_s) for seconds in (conditions.warm_up_s, conditions.measure_s)
    )
    return Record(
        cell,
        run,
        kind,
        noted.batches,
        counted_batches(noted.batches, warm_up, count, is_cut=bool(conditions.options)),
        noted.steps,
        noted.rss_mb,
        noted.cpu_s,
        conditions.measure_s,
        noted.snapshot_bytes,
    )


def counted_batches(batches: list[Timed], warm_up: int, count: int, *, is_cut: bool) -> list[Timed]:
    """Batches with rows after the first `warm_up`, at most `count`; a wait for the cut of a policy
    is not a batch's time."""
    with_rows = [batch for batch in batches if batch.rows]
    return [
        msgspec.structs.replace(
            batch, took_ms=batch.took_ms - (batch.admission_ms if is_cut else 0.0)
        )
        for batch in with_rows[warm_up : warm_up + count]
    ]


def runs(plan: Batches, folder: Path, opening: Open = rig) -> Steps[Record]:
    retries, numbers = Retries(plan.again_max), itertools.count(1)

    def seat(closing: contextlib.ExitStack, system: str, conf: Mapping[str, str]) -> Seat:
        place = folder / f"{next(numbers)}-{system}"
        return Seat.taken(closing, opening(plan, system, place, conf))

    for query in plan.queries:
        first, *_ = cells = plan.cells_of(query)
        with contextlib.ExitStack() as closing:
            calibration = yield from _calibrate(plan, seat(closing, "default", {}), first)
        store, conf = (SCHEME, calibration.conf) if calibration else (MEASURED_ON, {})
        with contextlib.ExitStack() as closing:
            seats = {name: seat(closing, name, conf) for name in plan.processes_at(query)}
            seats |= {
                name: seats["default"] for name in plan.systems_at(query) if name not in seats
            }
            if query == LR2:
                rate = yield from _found_rate(plan, seats, first, store)
                cells = (Cell(query, rate or first.rate),)
            yield from _compare(plan, cells, seats, store, retries)


def _calibrate(
    plan: Batches, seat: Seat, cell: Cell
) -> Generator[Step[Record], Record, Calibration | None]:
    conditions = plan.conditions(cell, "default", MEASURED_ON, plan.calibration, plan.warm_up)
    measure = partial(measured, plan, seat, conditions, cell, "default", 0, "calibration")
    record = yield Step(f"{cell.words}: what is a checkpoint?", measure)
    return record.calibration(plan.partitions)


def _compare(
    plan: Batches, cells: tuple[Cell, ...], seats: dict[str, Seat], store: str, retries: Retries
) -> Steps[Record]:
    for repeat in range(plan.repeats):
        for number, cell in enumerate(cells):
            for system in rotated(plan.systems_at(cell.query), repeat + number):
                conditions = plan.conditions(cell, system, store, plan.batches, plan.warm_up)
                measure = partial(measured, plan, seats[system], conditions, cell, system, repeat)
                words = f"{cell.words}: {system}, {repeat + 1} of {plan.repeats}"
                yield from with_retry(words, measure, measure, retries)


def _found_rate(
    plan: Batches, seats: dict[str, Seat], cell: Cell, store: str
) -> Generator[Step[Record], Record, int]:
    """The rate to compare at; 0 where one of both is not run, or none was held."""
    if not {"default", OURS} <= seats.keys():
        return 0

    def at(system: str, rate: int, number: int) -> Step[Record]:
        faster = msgspec.structs.replace(cell, rate=rate)
        conditions = plan.conditions(faster, system, store, plan.search.batches, plan.warm_up)
        measure = partial(
            measured, plan, seats[system], conditions, faster, system, number, "sustain"
        )
        return Step(f"{faster.words}: does {system} hold it?", measure)

    theirs = yield from searching(plan.search, partial(at, "default"))
    enough = least_of_ours(theirs)
    bounds = msgspec.structs.replace(plan.search, rate_first=enough, rate_max=enough)
    ours = yield from searching(bounds, partial(at, OURS))
    return chosen_rate(theirs, ours)


def sustained(tried: tuple[Tried, ...]) -> int:
    """The highest rate that held; of none, the lowest that did not, which flatters it."""
    held = [each.rate for each in tried if each.is_sustained]
    return max(held) if held else min((each.rate for each in tried), default=0)


def least_of_ours(theirs: tuple[Tried, ...]) -> int:
    """The rate that `full` must sustain for the one that `default` calls for."""
    return max(1, round(sustained(theirs) * OVER_DEFAULT / UNDER_FULL))


def chosen_rate(theirs: tuple[Tried, ...], ours: tuple[Tried, ...]) -> int:
    """The rate that is so much over what `default` sustains, and so far below what `full` does."""
    return round(min(OVER_DEFAULT * sustained(theirs), UNDER_FULL * sustained(ours)))
