"""Runs of the bounded suite: one Spark process for all of it, one query at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from penstock_lab.experiment.joint_rig import JointBench, JointRig, JointSeat
from penstock_lab.experiment.record import Kind, Measured, in_file
from penstock_lab.experiment.search import searching
from penstock_lab.experiment.systems import ALL_PROGRESS, ONE_PATH
from penstock_lab.experiment.together import QueryRun, Together, query_runs
from penstock_lab.experiment.turns import Step, Steps, Tell
from penstock_lab.suites.bounded.cells import POLICIES, STATIC, TRIGGER_S, Cell, Plan, part_of


class Record(Measured[Cell], frozen=True, kw_only=True):
    """A run, and what its batches were."""

    query_run: QueryRun


def for_file(record: Record) -> dict[str, Any]:
    """A run for the result file."""
    built: dict[str, Any] = msgspec.to_builtins(record.query_run)
    built["measured"] = len(record.query_run.measured)
    return {
        **in_file(record.run),
        "kind": record.kind,
        "cell": record.cell.name,
        **{name: part for name, part in built.items() if name != "run"},
    }


Open: TypeAlias = Callable[[Plan, Path], contextlib.AbstractContextManager[JointBench]]


def rig(plan: Plan, folder: Path) -> JointRig:
    conf = {**ALL_PROGRESS, **ONE_PATH}
    return JointRig("penstock", folder, cores=plan.cores, conf=conf, tells_commits=True)


def measured(
    plan: Plan,
    seat: JointSeat,
    cell: Cell,
    system: str,
    number: int,
    measure_s: float,
    kind: Kind = "compared",
) -> Record:
    conditions = Together(
        (part_of(cell.query, system),),
        cell.rate,
        plan.warm_up_s,
        measure_s,
        tail_s=TRIGGER_S,
        # As fast as the clock: slides and triggers are seconds of both.
        event_speed=1.0,
        stall_s=6 * TRIGGER_S,
        drain_s=120.0,
    )
    query_run = query_runs(conditions, system, number, seat.run(conditions), ())[cell.query]
    return Record(cell, query_run.run, kind, query_run=query_run)


def runs(plan: Plan, folder: Path, _tell: Tell, opening: Open = rig) -> Steps[Record]:
    with contextlib.ExitStack() as closing:
        seat = JointSeat.taken(closing, opening(plan, folder / "spark"))
        for cell in plan.cells:
            for system in (STATIC, POLICIES[cell.query][0]):
                words = f"{cell.words}: {system}, {plan.measure_s:g} s"
                yield Step(words, partial(measured, plan, seat, cell, system, 0, plan.measure_s))
        for query in plan.past_queries:
            at = partial(_at, plan, seat, query)
            tried = yield from searching(plan, at)
            failed = min((try_.rate for try_ in tried if not try_.is_sustained), default=None)
            if failed is not None:
                cell, ours = Cell(query, failed), POLICIES[query][0]
                words = f"{cell.words}, where static grows: {ours}"
                past = partial(measured, plan, seat, cell, ours, 0, plan.past_s, "past limit")
                yield Step(words, past)


def _at(plan: Plan, seat: JointSeat, query: str, rate: int, number: int) -> Step[Record]:
    cell = Cell(query, rate)
    measure = partial(measured, plan, seat, cell, STATIC, number, plan.past_s, "sustain")
    return Step(f"{cell.words}: does {STATIC} hold it?", measure)
