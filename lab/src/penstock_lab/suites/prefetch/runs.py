"""Runs of the prefetch suite: states filled once, backlogs that give the rates, modes in turns.

A Spark process of each mode stays for all runs of its group; all of them share one room, where the
server and the checkpoint are put back before every run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from penstock_lab.experiment.filled_room import FilledRoom
from penstock_lab.experiment.turns import Retries, Step, Steps, Tell, rotated, with_retry
from penstock_lab.percentiles import median
from penstock_lab.suites.prefetch import adaptation
from penstock_lab.suites.prefetch.cells import (
    LOAD_SHARE,
    OVERHEAD_QUERY,
    Cell,
    Group,
    Level,
    Plan,
    Workload,
)
from penstock_lab.suites.prefetch.modes import (
    ASYNCIO,
    ASYNCIO_OF,
    IN_MEMORY,
    LRU,
    MODES,
    OFF,
    OURS,
)
from penstock_lab.suites.prefetch.records import Record
from penstock_lab.suites.prefetch.rooms import (
    MEMORY,
    Enter,
    Fill,
    Open,
    Room,
    filled_state,
    rig,
)

IN_TURNS = (OFF, OURS)


def runs(
    plan: Plan,
    folder: Path,
    tell: Tell,
    opening: Open = rig,
    filling: Fill = filled_state,
    entering: Enter = FilledRoom,
) -> Steps[Record]:
    retries = Retries(plan.again_max)
    is_first = True
    for number, group in enumerate(plan.groups):
        place = folder / f"group-{number}"
        with contextlib.ExitStack() as closing:
            shared = closing.enter_context(entering(place / "room"))
            room = Room(plan, group, shared, place, opening)
            if group.part in plan.parts:
                for workload in group.workloads:
                    tell(f"{workload.name}: filling its state")
                    room.fill(workload, filling)
            room.take_seats(closing)
            if group.part in plan.parts:
                for workload in group.workloads:
                    yield from _rates(room, workload, retries)
            if is_first and OURS in group.modes and "overhead" in plan.parts:
                yield from _overhead(room, filling)
            if is_first and OURS in group.modes and "adaptation" in plan.parts:
                yield from _adaptation(room, tell, filling)
            is_first = False


def _rates(room: Room, workload: Workload, retries: Retries) -> Steps[Record]:
    """Backlogs first, then every mode at the rates that those gave."""
    plan, group = room.plan, room.group
    per_s: dict[str, float] = {}
    if plan.rate is None:
        per_s = yield from _backlogs(room, workload)
    rates = {level: plan.rate or rate_of(level, per_s) for level in group.levels}
    for repeat in range(plan.repeats):
        for level, rate in rates.items():
            cell = Cell(workload, level, rate)
            for system in rotated(group.shown, repeat):
                seat = seat_of(system, group, per_s)
                conditions = msgspec.structs.replace(room.conditions(workload, seat), rate=rate)
                measure = partial(room.measured, workload, cell, system, repeat, seat, conditions)
                words = f"{cell.words}: {system}, {repeat + 1} of {plan.repeats}"
                yield from with_retry(words, measure, measure, retries)


def _backlogs(room: Room, workload: Workload) -> Generator[Step[Record], Record, dict[str, float]]:
    """Rows per second of each mode, the median of its repeats, while it works off a backlog."""
    plan, cell = room.plan, Cell(workload)
    per_s: dict[str, list[float]] = {}
    for repeat, modes in enumerate(plan.backlogs_of(room.group)):
        for mode in rotated(modes, repeat):
            conditions = msgspec.structs.replace(
                room.conditions(workload, mode),
                backlog_events=plan.backlog_events,
                rows_max=plan.backlog_rows_max,
                drain_s=plan.seconds_max,
                stall_s=plan.seconds_max,
            )
            words = f"{workload.name}: how fast {mode} works off a backlog"
            measure = partial(
                room.measured, workload, cell, mode, repeat, mode, conditions, "backlog"
            )
            record = yield Step(words, measure)
            rows_per_s = record.filled_run.throughput if record.is_counted else None
            per_s.setdefault(mode, []).append(rows_per_s or 0.0)
    return {mode: median(each) or 0.0 for mode, each in per_s.items()}


def rate_of(level: Level, per_s: Mapping[str, float]) -> int:
    """Events per second: a share of what the plain cache, or the best mode but ours, works off."""
    others = [rows_per_s for mode, rows_per_s in per_s.items() if not mode.startswith(OURS)]
    best = per_s.get(LRU, 0.0) if level == "low" else max(others, default=0.0)
    return max(round(LOAD_SHARE * (best or max(per_s.values(), default=0.0))), 1)


def seat_of(system: str, group: Group, per_s: Mapping[str, float]) -> str:
    """The process a system runs in; `asyncio` has the better of two caches."""
    if system != ASYNCIO:
        return system
    there_are = [name for name in group.modes if name in ASYNCIO_OF]
    return max(there_are, key=lambda name: per_s.get(name, 0.0))


def _overhead(room: Room, filling: Fill) -> Steps[Record]:
    """Both modes in turns in one process, over the same rows and batches, state in memory."""
    plan, workload = room.plan, Workload(OVERHEAD_QUERY, series=MEMORY)
    room.fill(workload, filling)
    cell = Cell(workload)
    for turn in range(plan.overhead_turns + 1):
        for mode in rotated(IN_TURNS, turn):
            conditions = msgspec.structs.replace(
                room.conditions(workload, mode),
                backlog_events=plan.overhead_events,
                rows_max=plan.backlog_rows_max,
                # The reference's hot keys and few auctions: all of the state stays in memory.
                generator={},
                conf={
                    **MODES[mode].of_query,
                    **MODES[mode].blocks(room.group.budget_mb),
                    **IN_MEMORY,
                },
                drain_s=plan.seconds_max,
                stall_s=plan.seconds_max,
            )
            measure = partial(
                room.measured, workload, cell, mode, turn, OURS, conditions, "overhead"
            )
            yield Step(f"state in memory: {mode}, turn {turn + 1}", measure)


def _adaptation(room: Room, tell: Tell, filling: Fill) -> Steps[Record]:
    """One long run, in which hints lose their accuracy and later have more time than they need."""
    workload = adaptation.workload()
    tell(f"{workload.name}: filling its state")
    room.fill(workload, filling)
    yield Step("a join begins to drop rows, then reads get faster", room.adapted)
