"""Runs of the recovery suite: states filled once, then kills in turns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from penstock.spark.class_archive import make_archive
from penstock_lab.experiment.driver_commands import Setup
from penstock_lab.experiment.filled import EVENT_RATE, FilledState
from penstock_lab.experiment.filled_rig import fill
from penstock_lab.experiment.filled_room import FilledRoom
from penstock_lab.experiment.turns import Step, Steps, Tell, rotated
from penstock_lab.measure.recoveries import (
    EXECUTOR,
    Recovered,
    RecoveryRun,
    RecoverySystem,
    RecoveryTerms,
)
from penstock_lab.queries import named
from penstock_lab.suites.recovery.cells import QUERY, SYSTEMS, Plan
from penstock_lab.workloads.nexmark.old_events import old_events
from penstock_lab.workloads.nexmark.order import AUCTIONS_PER_EPOCH, EPOCH

SEED = 7
FILL_ROWS_MAX = 20_000

Fill: TypeAlias = Callable[[Plan, RecoverySystem, FilledRoom, Path], FilledState]
Run: TypeAlias = Callable[
    [Plan, RecoverySystem, FilledRoom, FilledState, Path, Path, int, tuple[str, ...]], Recovered
]
Archive: TypeAlias = Callable[[Path], Path]
Enter: TypeAlias = Callable[[Path], contextlib.AbstractContextManager[FilledRoom]]


def filled(plan: Plan, system: RecoverySystem, room: FilledRoom, folder: Path) -> FilledState:
    """The state of the query, as this system keeps it."""
    bids_from = plan.auctions // AUCTIONS_PER_EPOCH * EPOCH
    until = bids_from + plan.fill_events
    rows = old_events(plan.generator, EVENT_RATE, SEED, bids_from, until, has_auctions=False)
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = str(folder.parent / f"fill-{system.name}.log")
    setup = Setup(system.system, 2, log, system.conf, True)
    query = named(QUERY)
    return fill(room, folder, setup, query, rows, rows_max=FILL_ROWS_MAX, next_event=until)


def recovered(
    plan: Plan,
    system: RecoverySystem,
    room: FilledRoom,
    state: FilledState,
    folder: Path,
    archives: Path,
    repeat: int,
    kills: tuple[str, ...],
) -> Recovered:
    terms = RecoveryTerms(plan.rate, plan.batches_between, generator=plan.generator)
    return RecoveryRun(system, room, state, terms, folder, archives).run(repeat, kills)


def runs(
    plan: Plan,
    folder: Path,
    tell: Tell,
    filling: Fill = filled,
    running: Run = recovered,
    entering: Enter = FilledRoom,
    archiving: Archive = make_archive,
) -> Steps[Recovered]:
    archives = folder / "classes"
    if any(SYSTEMS[name].has_archive for name in plan.systems):
        tell("laying out Spark's classes")
        archiving(archives)
    with contextlib.ExitStack() as closing:
        room = closing.enter_context(entering(folder / "room"))
        states = {}
        for name in plan.filled:
            tell(f"{name}: filling its state")
            states[name] = filling(plan, SYSTEMS[name], room, folder / "saved" / name)
        for repeat in range(plan.repeats):
            for is_local, names in ((True, plan.systems), (False, plan.clustered)):
                for name in rotated(names, repeat) if names else ():
                    kills = plan.local_kills_of(name) if is_local else (EXECUTOR,)
                    if not kills:
                        continue
                    system = SYSTEMS[name]
                    state = states[plan.fill_of(name)]
                    place = folder / f"{name}-{kills[0]}"
                    measure = partial(
                        running, plan, system, room, state, place, archives, repeat, kills
                    )
                    words = f"{name}: {', '.join(kills)}, {repeat + 1} of {plan.repeats}"
                    yield Step(words, measure)
