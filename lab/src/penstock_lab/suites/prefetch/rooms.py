"""Rooms of the prefetch suite: the Spark processes of a group, and the states they begin with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from penstock_lab.experiment import campaigns
from penstock_lab.experiment.checks import with_oracle
from penstock_lab.experiment.driver_commands import Setup
from penstock_lab.experiment.filled import EVENT_RATE, FilledConditions, FilledState, filled_run
from penstock_lab.experiment.filled_rig import FilledBench, FilledRig, FilledSeat, fill, unfilled
from penstock_lab.experiment.filled_room import FilledRoom
from penstock_lab.experiment.record import Kind
from penstock_lab.queries import named
from penstock_lab.suites.prefetch import adaptation
from penstock_lab.suites.prefetch.cells import (
    ADS,
    SIDE_INPUT_ROWS,
    SYSTEM,
    Cell,
    Group,
    Plan,
    Workload,
)
from penstock_lab.suites.prefetch.modes import IN_MEMORY, LRU, MODES, OFF, OURS
from penstock_lab.suites.prefetch.records import Record
from penstock_lab.workloads.nexmark.old_events import old_events
from penstock_lab.workloads.nexmark.order import AUCTIONS_PER_EPOCH, EPOCH

PROGRESS = {"spark.sql.streaming.numRecentProgressUpdates": "5000"}
"""More batches than any run has are remembered."""
FILL_ROWS_MAX = 20_000
MEMORY = "memory"
"""The series whose state is small enough to stay in memory."""


Open: TypeAlias = Callable[
    [Plan, Group, str, FilledRoom, Path], contextlib.AbstractContextManager[FilledBench]
]
Enter: TypeAlias = Callable[[Path], contextlib.AbstractContextManager[FilledRoom]]
Fill: TypeAlias = Callable[[Plan, Workload, FilledRoom, Path], FilledState]


def rig(plan: Plan, group: Group, mode: str, room: FilledRoom, folder: Path) -> FilledRig:
    conf = {**MODES[mode].conf(group.budget_mb, group.reads), **PROGRESS}
    check = partial(with_oracle, generator=ADS)
    return FilledRig(SYSTEM, folder, room, cores=plan.cores, conf=conf, check=check)


def filled_state(plan: Plan, workload: Workload, room: FilledRoom, folder: Path) -> FilledState:
    """The state of a workload; a query that looks up elsewhere keeps none worth filling."""
    # So many events that as many auctions are open when the first bid comes.
    bids_from = plan.auctions // AUCTIONS_PER_EPOCH * EPOCH
    until = bids_from + plan.fill_events_of(workload)
    query = named(workload.query, **parameters_of(plan, workload, LRU, until))
    if workload.query == "ysb":
        campaigns.fill(plan.redis, plan.seed, ADS)
    if workload.query == "q13":
        campaigns.fill_side_input(plan.redis, SIDE_INPUT_ROWS)
    if workload.is_lookup or workload.series == MEMORY:
        return unfilled(room, folder, query, plan.cores)
    is_adapting = workload.query == adaptation.QUERY
    rows = old_events(
        adaptation.generator(plan, until) if is_adapting else plan.generator(workload),
        EVENT_RATE,
        plan.seed,
        bids_from,
        until,
        has_auctions="auctions" in query.inputs,
    )
    conf = {**MODES[OFF].conf(4 * workload.budget_mb, workload.reads), **IN_MEMORY, **PROGRESS}
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = str(folder.parent / f"fill-{workload.query}.log")
    setup = Setup(SYSTEM, plan.cores, log, conf, True)
    return fill(room, folder, setup, query, rows, rows_max=FILL_ROWS_MAX, next_event=until)


def parameters_of(plan: Plan, workload: Workload, mode: str, first: int = 0) -> dict[str, Any]:
    """Parameters of the query: those that look up are told where, and by which policy."""
    if workload.query == adaptation.QUERY:
        return adaptation.parameters(first)
    if not workload.is_lookup:
        return {}
    rows = {"side_input_rows": SIDE_INPUT_ROWS} if workload.query == "q13" else {}
    return {"redis": plan.redis, **rows, **MODES[mode].lookup}


class Room:
    """The processes of a group and the states they begin with, all in one room."""

    def __init__(
        self, plan: Plan, group: Group, room: FilledRoom, folder: Path, opening: Open
    ) -> None:
        self.plan = plan
        self.group = group
        self._room = room
        self._folder = folder
        self._opening = opening
        self._seats: dict[str, FilledSeat] = {}
        self.states: dict[Workload, FilledState] = {}

    def take_seats(self, closing: contextlib.ExitStack) -> None:
        for mode in self.group.processes:
            opened = self._opening(self.plan, self.group, mode, self._room, self._folder / mode)
            self._seats[mode] = FilledSeat.taken(closing, opened)
        for guest, host in self.group.guests.items():
            self._seats[guest] = self._seats[host]

    def fill(self, workload: Workload, filling: Fill) -> None:
        saved = self._folder / "saved" / workload.name
        self.states[workload] = filling(self.plan, workload, self._room, saved)

    def measured(
        self,
        workload: Workload,
        cell: Cell,
        system: str,
        repeat: int,
        seat: str,
        conditions: FilledConditions,
        kind: Kind = "compared",
    ) -> Record:
        state = self.states[workload]
        noted = self._seats[seat].run(state, conditions)
        run = filled_run(conditions, system, repeat, noted)
        state_bytes = max(state.sst_bytes, run.reads.sst_bytes)
        return Record(cell, run.run, kind, filled_run=run, state_bytes=state_bytes)

    def adapted(self) -> Record:
        """The run in which the controller has to move."""
        workload = adaptation.workload()
        state = self.states[workload]
        run = adaptation.conditions(self.plan, state)
        noted = self._seats[OURS].run(state, run)
        record = filled_run(run, OURS, 0, noted)
        return Record(
            Cell(workload),
            record.run,
            "adaptation",
            filled_run=record,
            state_bytes=state.sst_bytes,
            shifts=adaptation.shifts(noted),
        )

    def conditions(self, workload: Workload, mode: str) -> FilledConditions:
        return FilledConditions(
            workload.query,
            warm_batches=self.plan.warm_batches,
            batches=self.plan.batches,
            seconds_max=self.plan.seconds_max,
            parameters=parameters_of(self.plan, workload, mode),
            generator=self.plan.generator(workload),
            conf=MODES[mode].of_query if mode in self.group.guests else {},
            seed=self.plan.seed,
        )
