"""Spark processes of the deadlines suite, and one run of all queries in one of them.

A process stays for all runs of the modes that share its scheduler.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from penstock_lab.experiment.joint_rig import JointBench, JointRig, JointSeat
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.record import Kind
from penstock_lab.experiment.systems import ALL_PROGRESS
from penstock_lab.experiment.together import Together, query_runs, summed_up
from penstock_lab.experiment.visible_rows import Recovery, recovery
from penstock_lab.suites.deadlines.cells import ALL, BESIDE_S, Cell, Plan
from penstock_lab.suites.deadlines.modes import MODES, PROCESSES
from penstock_lab.suites.deadlines.record import Record

Open: TypeAlias = Callable[[Plan, str, Path], contextlib.AbstractContextManager[JointBench]]


def rig(plan: Plan, process: str, folder: Path) -> JointRig:
    system, conf = PROCESSES[process]
    conf = {**conf, **ALL_PROGRESS}
    return JointRig(system, folder, cores=plan.cores, conf=conf, tells_commits=True)


class Seats:
    """Spark processes, each started when it is first needed and kept until all is done."""

    def __init__(
        self, plan: Plan, folder: Path, opening: Open, closing: contextlib.ExitStack
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._opening = opening
        self._closing = closing
        self._seats: dict[str, JointSeat] = {}

    def of(self, mode: str) -> JointSeat:
        process = MODES[mode].process
        if process not in self._seats:
            opened = self._opening(self._plan, process, self._folder / process)
            self._seats[process] = JointSeat.taken(self._closing, opened)
        return self._seats[process]


def measured(
    plan: Plan, seats: Seats, cell: Cell, mode: str, repeat: int, rate: int, kind: Kind
) -> Record:
    seat = seats.of(mode)
    warm_up_s = plan.warm_up_s if seat.is_warm else plan.first_warm_up_s
    measure_s = plan.searched_s(cell.deadline_s) if kind == "sustain" else None
    conditions = plan.conditions(mode, cell.deadline_s, cell.traffic, rate, warm_up_s, measure_s)
    return recorded(plan, seat, cell, mode, repeat, conditions, kind)


def recorded(
    plan: Plan,
    seat: JointSeat,
    cell: Cell,
    mode: str,
    repeat: int,
    conditions: Together,
    kind: Kind,
) -> Record:
    noted = seat.run(conditions)
    bounds = tuple(dict.fromkeys((*plan.deadlines_s, cell.deadline_s, *BESIDE_S)))
    queries = query_runs(conditions, mode, repeat, noted, bounds)
    run = summed_up(ALL, mode, repeat, conditions.rate, queries)
    recoveries: dict[str, Recovery] = {}
    if noted.report is not None:
        for name, part in noted.parts.items():
            back = back_under(
                conditions, part.rows, noted.report.started_ms, noted.started_ms, cell.deadline_s
            )
            if back is not None:
                recoveries[name] = back
    return Record(cell, run, kind, queries, recoveries, noted.started_ms)


def back_under(
    conditions: Together,
    rows: list[Sighting],
    sent_from_ms: float,
    started_ms: float,
    deadline_s: float,
) -> Recovery | None:
    """The way of a query back after its burst, or after the backlog it started with."""
    sent_from_us = round(sent_from_ms * 1000)
    if conditions.traffic == "burst":
        began_us = sent_from_us + round(conditions.burst_from_s * 1e6)
        warm_us = sent_from_us + round(conditions.warm_up_s * 1e6)
        over_us = began_us + round(conditions.burst_s * 1e6)
        return recovery(rows, warm_us, began_us, over_us, deadline_s)
    if conditions.backlog_rows:
        # Rows of the backlog had waited before anybody could take them.
        mine = [
            Sighting(batch.seen_us, batch.sent_us[batch.sent_us >= sent_from_us]) for batch in rows
        ]
        started_us = round(started_ms * 1000)
        return recovery(mine, started_us, started_us, started_us, deadline_s)
    return None
