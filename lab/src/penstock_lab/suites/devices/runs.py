"""Runs of the devices suite: operations by themselves, then workloads on Spark, the modes one after
the other, and in the next repeat the other way round.

One server and one Spark process stay for all workloads: what a machine costs is learned there, by
all modes for all. A run that would end after the time that was given is not begun.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import PenstockError
from penstock.model.device_plans import OperationKind
from penstock_lab.experiment import worker
from penstock_lab.experiment.joint_rig import JointBench, JointRig, JointSeat
from penstock_lab.experiment.record import Kind
from penstock_lab.experiment.search import next_rate, tried_of
from penstock_lab.experiment.systems import ALL_PROGRESS
from penstock_lab.experiment.together import query_runs
from penstock_lab.experiment.turns import (
    LATE,
    Retries,
    Step,
    Steps,
    Tell,
    alternated,
    with_retry,
)
from penstock_lab.experiment.worker import Job
from penstock_lab.suites.devices.cells import (
    LEARNED_S,
    MIB,
    ON_SPARK,
    OPERATION_S,
    SEARCHED_TRAFFIC,
    START_S,
    Cell,
    Plan,
)
from penstock_lab.suites.devices.plans import Asked
from penstock_lab.suites.devices.records import (
    InflectionRecord,
    OperationRecord,
    Record,
    SparkRecord,
    on_spark,
    spark_record,
)
from penstock_lab.suites.devices.workloads import WORKLOADS

WORKER = "penstock_lab.measure.operation_times"
WORKER_TIMEOUT_S = 300.0
LEARNED_BYTES_MAX = 16 * MIB
"""Sizes up to which points are looked for, and up to which "from which on" holds."""
SYSTEM = "penstock"

Open: TypeAlias = Callable[[Plan, Path], contextlib.AbstractContextManager[JointBench]]
Ask: TypeAlias = Callable[[str, Job, float], dict[str, Any]]


def rig(plan: Plan, folder: Path) -> JointRig:
    return JointRig(SYSTEM, folder, cores=plan.cores, conf=ALL_PROGRESS, tells_commits=True)


class TimeLeft:
    """The time until which runs may end; without a bound there is always some."""

    def __init__(self, minutes: float | None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._until_s = None if minutes is None else clock.monotonic_s() + minutes * 60

    def has(self, seconds: float) -> bool:
        return self._until_s is None or self._clock.monotonic_s() + seconds <= self._until_s


def runs(
    asked: Asked,
    folder: Path,
    tell: Tell,
    opening: Open = rig,
    ask: Ask = worker.ask_apart,
    clock: Clock = SYSTEM_CLOCK,
) -> Steps[Record]:
    """Records of earlier results, then what the plan measures here."""
    plan, left = asked.plan, TimeLeft(asked.plan.minutes_max, clock)
    for record in asked.earlier:
        yield Step(None, partial(_same, record))
    if plan.skipped:
        return
    repeat = asked.first_repeat
    parts: list[Steps[Any]] = [
        _operations(plan, folder, repeat, left, ask),
        _inflections(plan, folder, repeat, left, ask),
    ]
    if any(part in plan.parts for part in ON_SPARK):
        known = on_spark(asked.earlier)
        parts.append(_on_spark(plan, folder / "spark", repeat, left, opening, known))
    for part in parts:
        yield from part


def _same(record: Record) -> Record:
    return record


def _operations(
    plan: Plan, folder: Path, repeat: int, left: TimeLeft, ask: Ask
) -> Steps[OperationRecord]:
    for kind in plan.kinds if "operations" in plan.parts else ():
        if left.has(OPERATION_S):
            options = {"kind": kind, "sizes": plan.sizes, "seconds": plan.operation_s}
            job = Job("operations", str(folder / f"operations-{kind}"), options)
            yield Step(f"{kind} on both devices", partial(_times, kind, repeat, job, ask))


def _times(kind: OperationKind, repeat: int, job: Job, ask: Ask) -> OperationRecord:
    built = {"part": "operations", "kind": kind, **_answer(job, ask), "repeat": repeat}
    return msgspec.convert(built, OperationRecord)


def _answer(job: Job, ask: Ask) -> dict[str, Any]:
    """The answer of a worker; that it has none is a result too, and the others go on."""
    try:
        return ask(WORKER, job, WORKER_TIMEOUT_S)
    except PenstockError as error:
        return {"reason": error.message}


def _inflections(
    plan: Plan, folder: Path, repeat: int, left: TimeLeft, ask: Ask
) -> Steps[InflectionRecord]:
    sizes = tuple(size for size in plan.sizes if size <= LEARNED_BYTES_MAX)
    for kind in plan.kinds if "inflection" in plan.parts else ():
        if left.has(LEARNED_S):
            options = {
                "kind": kind,
                "sizes": sizes,
                "seconds": plan.operation_s,
                "batches": plan.learned_batches,
                "seed": 7 + repeat,
            }
            job = Job("inflection", str(folder / f"inflection-{kind}"), options)
            words = f"{kind}: its inflection point, from starts that are wrong"
            yield Step(words, partial(_learned, kind, repeat, job, ask))


def _learned(kind: OperationKind, repeat: int, job: Job, ask: Ask) -> InflectionRecord:
    built = {"part": "inflection", "kind": kind, **_answer(job, ask), "repeat": repeat}
    return msgspec.convert(built, InflectionRecord)


def _on_spark(
    plan: Plan,
    folder: Path,
    repeat: int,
    left: TimeLeft,
    opening: Open,
    known: Iterable[SparkRecord],
) -> Steps[SparkRecord]:
    """Each workload by itself: latencies in turns, then the rates that hold."""
    seen, retries = list(known), Retries(plan.again_max)
    if not left.has(START_S + plan.run_s_max):
        return
    with contextlib.ExitStack() as closing:
        seat = JointSeat.taken(closing, opening(plan, folder))
        for workload in plan.workloads:
            if "latency" in plan.parts:
                yield from _latencies(plan, seat, workload, repeat, left, retries, seen)
            for mode in plan.searched if "rates" in plan.parts else ():
                yield from _rates(plan, seat, workload, mode, repeat, left, seen)


def _latencies(
    plan: Plan,
    seat: JointSeat,
    workload: str,
    repeat: int,
    left: TimeLeft,
    retries: Retries,
    seen: list[SparkRecord],
) -> Steps[SparkRecord]:
    cells = [cell for cell in plan.cells if cell.workload == workload]
    for turn in range(plan.repeats):
        number = repeat + turn
        for cell in cells:
            for mode in alternated(plan.modes_at(cell), number):
                if not left.has(plan.run_s_max):
                    return
                words = f"{cell.words}: {mode}, {turn + 1} of {plan.repeats}"
                is_reversed = number % 2 == 1
                measure = partial(measured, plan, seat, cell, mode, number, "compared", is_reversed)
                seen.append((yield from with_retry(words, measure, measure, retries)))


def _rates(
    plan: Plan,
    seat: JointSeat,
    workload: str,
    mode: str,
    repeat: int,
    left: TimeLeft,
    seen: list[SparkRecord],
) -> Generator[Step[SparkRecord], SparkRecord, None]:
    """The search for the highest rate that holds; runs in the same traffic are its first tries."""
    search = plan.search
    tried = [record.run for record in of_search(seen, workload, mode)]
    tries_max = len(tried) + search.tries_max
    while left.has(plan.run_s_max):
        rate = next_rate(tried_of(tried), search.rate_first, search.rate_max, tries_max)
        if rate is None:
            return
        cell = Cell(workload, SEARCHED_TRAFFIC, rate)
        words = f"{cell.words}: does {mode} hold it?"
        record = yield Step(words, partial(measured, plan, seat, cell, mode, repeat, "sustain"))
        seen.append(record)
        tried.append(record.run)


def of_search(records: Iterable[SparkRecord], workload: str, mode: str) -> list[SparkRecord]:
    """Runs that tell which rate of a workload a mode holds. Of those that were made for another
    purpose one with a late sender says nothing; in a search it ends it, as any failure does."""
    return [
        record
        for record in records
        if (record.cell.workload, record.system) == (workload, mode)
        and record.cell.traffic == SEARCHED_TRAFFIC
        and (record.kind == "sustain" or record.run.verdict.kind != LATE)
    ]


def measured(
    plan: Plan,
    seat: JointSeat,
    cell: Cell,
    mode: str,
    repeat: int,
    kind: Kind,
    is_reversed: bool | None = None,
) -> SparkRecord:
    conditions = plan.conditions(cell, mode, is_first=not seat.is_warm)
    query = WORKLOADS[cell.workload].query
    query_run = query_runs(conditions, mode, repeat, seat.run(conditions), ())[query]
    return spark_record(cell, query_run, kind, is_reversed)
