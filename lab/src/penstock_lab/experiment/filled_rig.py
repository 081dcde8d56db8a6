"""Runs that begin with a filled state: fills it, puts it back, and measures what comes after.

A run goes, in this order:

1. server and checkpoint are put back to where the fill had left them;
2. a backlog is sent before the query starts, or a sender makes its rows while it does;
3. the query loads its state and works until enough batches have warmed it up;
4. from there on batches, processor time and counts are measured, until there are enough batches;
5. the sender is cut short, what was sent is worked off, and the query stops;
6. the input is read again, batch by batch as the markers name it, and the answer is checked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec
import pyarrow as pa

from penstock.clock import SYSTEM_CLOCK
from penstock.errors import BadCall, TryAgain
from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.children import Engine, Sender
from penstock_lab.experiment.driver_commands import Count, Delay, Drain, Look, Setup, Start, Stop
from penstock_lab.experiment.filled import FilledConditions, FilledNoted, FilledState
from penstock_lab.experiment.filled_room import FilledRoom
from penstock_lab.experiment.joint_rig import JointRig
from penstock_lab.experiment.processor_time import cpu_s
from penstock_lab.experiment.query_sets import query_set_of
from penstock_lab.experiment.rig import SENDER_GRACE_S, START_TIMEOUT_S, STOP_TIMEOUT_S
from penstock_lab.experiment.seat import ProcessSeat
from penstock_lab.experiment.state_reads import CacheReads, StateReads
from penstock_lab.experiment.visible_rows import batch_rows, joined, spans
from penstock_lab.queries import Query, named
from penstock_lab.workloads.load import WORKLOADS

Rows: TypeAlias = Iterable[tuple[str, pa.RecordBatch]]
"""Rows to fill a state with, each piece with the stream it belongs to."""
POLL_S = 0.1
LOOK_EVERY_S = 2.0
FILL_TIMEOUT_S = 900.0
SKIPPED_BATCHES = 2
"""Of a backlog: the first loads the state, and the second finds code not compiled yet."""


class FilledBench(Protocol):
    """Bench for runs from a filled state; `FilledRig` is the real one."""

    def run_filled(self, filled: FilledState, conditions: FilledConditions) -> FilledNoted: ...


class FilledSeat(ProcessSeat[FilledBench]):
    """The seat of a process that runs from filled states."""

    def run(self, filled: FilledState, conditions: FilledConditions) -> FilledNoted:
        return self._outcome(
            lambda bench: bench.run_filled(filled, conditions),
            lambda error: FilledNoted(error=error),
        )


def create_streams(room: FilledRoom, query: Query, cores: int) -> dict[str, str]:
    """The inputs and outputs of a query, by their own names."""
    workload = WORKLOADS[query_set_of(query.name).workload]
    for name in query.inputs:
        room.client.create(name, workload.stream_schema(name), substreams=cores)
    for stage in query.stages:
        room.client.create(stage.name, stage.columns, substreams=cores, key=stage.route or None)
    return {name: name for name in (*query.inputs, *(stage.name for stage in query.stages))}


def unfilled(room: FilledRoom, folder: Path, query: Query, cores: int) -> FilledState:
    """A query that begins with nothing, in streams that are there."""
    room.put_back()
    streams = create_streams(room, query, cores)
    room.save(folder)
    return FilledState(query.name, str(folder), streams)


def fill(
    room: FilledRoom,
    folder: Path,
    setup: Setup,
    query: Query,
    rows: Rows,
    *,
    rows_max: int,
    next_event: int,
) -> FilledState:
    """Run a query over rows in a Spark process of its own, and save all that it has left."""
    room.put_back()
    streams = create_streams(room, query, setup.cores)
    for stream, piece in rows:
        room.client.append(streams[stream], piece)
    engine = Engine(setup, room.server.address)
    try:
        engine.wait_ready()
        start = Start(
            query.name,
            streams,
            str(room.run),
            dict(query.parameters),
            rows_max=rows_max,
            is_awaited=False,
        )
        ids: dict[str, str] = engine.ask(start, START_TIMEOUT_S)["ids"]
        engine.ask(Drain(), FILL_TIMEOUT_S)
        stages = engine.ask(Stop(), STOP_TIMEOUT_S)["stages"]
    finally:
        engine.stop()
    (stage,) = query.stages
    markers = room.client.markers(ids[stage.name])
    reads = msgspec.convert(stages[stage.name]["reads"], list[StateReads])
    room.save(folder)
    return FilledState(
        query.name,
        str(folder),
        streams,
        ids,
        int(markers[-1].batch),
        # A marker names the inputs its batch had rows of, and positions only grow.
        {name: int(position) for marker in markers for name, position in marker.positions.items()},
        next_event,
        max((batch.sst_bytes for batch in reads), default=0),
    )


class FilledRig(JointRig):
    """A Spark process in a room that it shares; runs take turns. Queries have one stage."""

    def __init__(self, name: str, folder: Path, room: FilledRoom, **options: Any) -> None:
        super().__init__(name, folder, tells_commits=True, **options)
        self._room = room

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._enter_room()
        self._start_engine()

    def _enter_room(self) -> None:
        self._server, self._client = self._room.server, self._room.client

    def run_filled(self, filled: FilledState, conditions: FilledConditions) -> FilledNoted:
        """One run from a filled state to a checked answer; errors are noted, not raised."""
        noted = FilledNoted()
        query = named(filled.query, **conditions.parameters)
        self._room.put_back(Path(filled.folder))  # 1
        self._enter_room()
        with self._noting_errors(noted, self._room.run):
            self._measure_filled(query, filled, conditions, noted)
        return noted

    def _measure_filled(
        self, query: Query, filled: FilledState, conditions: FilledConditions, noted: FilledNoted
    ) -> None:
        (stage,) = query.stages
        with contextlib.ExitStack() as closing:
            sender = self._filled_sender(query, filled, conditions)  # 2
            closing.callback(sender.stop)
            if conditions.backlog_events:
                sender.wait_ready()
                sender.go()
                noted.report = sender.wait_report(SENDER_GRACE_S + conditions.seconds_max)
            if conditions.read_ms is not None:
                self._ask(Delay(conditions.read_ms), STOP_TIMEOUT_S)
            ids = self._start_filled(filled, conditions)  # 3
            query_id = ids[stage.name]
            is_worked_off = (
                self._work_off(query_id, filled, conditions, noted)
                if conditions.backlog_events
                else self._send_live(query_id, filled, conditions, sender, noted)
            )
            stages: dict[str, Any] = {}
            if is_worked_off:
                stages = self._ask(Stop(), STOP_TIMEOUT_S)["stages"]
            else:
                noted.is_drained = False
                self._replace_engine()
            self._look_back_filled(query, filled, ids, stages, noted)  # 6

    def _filled_sender(
        self, query: Query, filled: FilledState, conditions: FilledConditions
    ) -> Sender:
        assert self._server is not None
        inputs = {name: filled.streams[name] for name in query.inputs}
        load = conditions.load(inputs, filled.next_event)
        log = self._folder / "sender.log"
        return Sender(load, log, f"live-{self._folder.name}", self._server.address, None)

    def _start_filled(self, filled: FilledState, conditions: FilledConditions) -> dict[str, str]:
        start = Start(
            filled.query,
            filled.streams,
            str(self._room.run),
            conditions.parameters,
            rows_max=conditions.rows_max,
            # A query that meets a backlog has nothing to wait for.
            is_awaited=not conditions.backlog_events,
            conf=conditions.conf,
        )
        ids: dict[str, str] = self._ask(start, START_TIMEOUT_S)["ids"]
        if filled.ids and ids != filled.ids:
            raise TryAgain(
                f"{filled.query} did not go on from the checkpoint that was filled for it",
                code="query_failed",
            )
        return ids

    def _work_off(
        self,
        query_id: str,
        filled: FilledState,
        conditions: FilledConditions,
        noted: FilledNoted,
    ) -> bool:
        """Measure from the marker of the first batches to the end of the backlog."""
        until_s = SYSTEM_CLOCK.monotonic_s() + conditions.seconds_max
        skipped = filled.last_batch + SKIPPED_BATCHES
        self._wait_until(lambda: self._batch(query_id) >= skipped, until_s)
        before_s = self._begin(noted)
        if conditions.is_sampled:
            self._sample(query_id, filled.last_batch, conditions, noted, until_s)
        is_worked_off = self._is_worked_off(conditions.drain_s)
        self._end(before_s, noted)
        return is_worked_off

    def _send_live(
        self,
        query_id: str,
        filled: FilledState,
        conditions: FilledConditions,
        sender: Sender,
        noted: FilledNoted,
    ) -> bool:
        """Measure so many batches after those that warm up; then let the sender end."""
        sender.wait_ready()
        sender.go()
        until_s = SYSTEM_CLOCK.monotonic_s() + conditions.seconds_max
        warm = self._batch(query_id) + conditions.warm_batches
        self._wait_until(lambda: self._batch(query_id) >= warm, until_s)
        before_s = self._begin(noted)  # 4
        begun = self._batch(query_id)
        enough = begun + conditions.batches
        is_enough = self._wait_until(lambda: self._batch(query_id) >= enough, until_s)
        self._end(before_s, noted)
        if is_enough:
            sender.cut_short()  # 5
        noted.report = sender.wait_report(SENDER_GRACE_S)
        return self._is_worked_off(conditions.drain_s)

    def _sample(
        self,
        query_id: str,
        begun: int,
        conditions: FilledConditions,
        noted: FilledNoted,
        until_s: float,
    ) -> None:
        """Ask for counts after every batch; from one of them on, have reads made faster."""
        last, faster_from = begun, begun + conditions.faster_after
        while last < begun + conditions.batches:
            if not self._wait_until(partial(self._is_past, query_id, last), until_s):
                return
            last = self._batch(query_id)
            self._count(noted, last)
            if conditions.faster_after and noted.faster_from < 0 and last >= faster_from:
                self._ask(Delay(0), STOP_TIMEOUT_S)
                # The batch after the last one may be under way.
                noted.faster_from = last + 2

    def _is_past(self, query_id: str, batch: int) -> bool:
        return self._batch(query_id) > batch

    def _batch(self, query_id: str) -> int:
        """Number of the last batch with a marker; -1 before the first, as for an unknown query."""
        assert self._client is not None
        try:
            marker = self._client.query(query_id).marker
        except BadCall as error:
            if error.code != "unknown_query":
                raise
            marker = None
        return -1 if marker is None else int(marker.batch)

    def _wait_until(self, is_done: Callable[[], bool], until_s: float) -> bool:
        """Whether it was done by then; TryAgain, in Spark's words, if the query has ended."""
        looked_s = SYSTEM_CLOCK.monotonic_s()
        while not is_done():
            now_s = SYSTEM_CLOCK.monotonic_s()
            if now_s >= until_s:
                return False
            if now_s - looked_s > LOOK_EVERY_S:
                self._ask(Look(), STOP_TIMEOUT_S)
                looked_s = now_s
            SYSTEM_CLOCK.sleep(POLL_S)
        return True

    def _begin(self, noted: FilledNoted) -> float | None:
        """Counts from here on are those of the measured stretch."""
        self._ask(Count(), STOP_TIMEOUT_S)
        noted.from_ms = SYSTEM_CLOCK.wall_ms()
        return cpu_s(self._pids())

    def _end(self, before_s: float | None, noted: FilledNoted) -> None:
        after_s = cpu_s(self._pids())
        noted.until_ms = SYSTEM_CLOCK.wall_ms()
        if before_s is not None and after_s is not None:
            noted.cpu_s = after_s - before_s
        self._count(noted, -1)

    def _count(self, noted: FilledNoted, batch: int) -> None:
        for counted in self._ask(Count(), STOP_TIMEOUT_S).values():
            reads = msgspec.convert(counted, CacheReads)
            noted.cache.append(msgspec.structs.replace(reads, batch=batch))

    def _look_back_filled(
        self,
        query: Query,
        filled: FilledState,
        ids: dict[str, str],
        stages: dict[str, Any],
        noted: FilledNoted,
    ) -> None:
        assert self._client is not None
        client, (stage,) = self._client, query.stages
        markers = client.markers(ids[stage.name], filled.last_batch if filled.ids else None)
        taken = joined(
            [
                batch_rows(client, filled.streams[name], markers, filled.positions.get(name))
                for name in stage.reads
            ]
        )
        noted.rows = [rows.sighting for rows in taken]
        if stage.name in stages:
            batches = msgspec.convert(stages[stage.name]["batches"], list[Timed])
            told_work = stages[stage.name]["work"]
            work = msgspec.convert(told_work, dict[int, tuple[float, float]], str_keys=True)
            noted.batches = spans(batches, markers, taken, work)
            noted.reads = msgspec.convert(stages[stage.name]["reads"], list[StateReads])
        checked = self._check(client, query, ids, filled.streams, self._room.run)
        noted.rows_checked, noted.rows_different = checked.rows_checked, checked.rows_different
        noted.differences = list(checked.first)
