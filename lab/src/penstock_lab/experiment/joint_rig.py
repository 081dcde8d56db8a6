"""Runs of several queries at once: one server, one Spark process, one sender.

A run goes as one of a single query (`rig`), with these differences: a backlog is sent before the
queries start; each query has a reader of its own; when all is worked off, the input is read again,
batch by batch as the markers name it, to learn when each row was visible.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import msgspec

from penstock.clock import SYSTEM_CLOCK
from penstock.errors import PenstockError
from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.children import Sender
from penstock_lab.experiment.device_plans import planned_batches
from penstock_lab.experiment.driver_commands import Start, Stop
from penstock_lab.experiment.estimates import estimates_off
from penstock_lab.experiment.outside_reader import LogObserver
from penstock_lab.experiment.processor_time import cpu_in
from penstock_lab.experiment.query_sets import window_of
from penstock_lab.experiment.rig import (
    SENDER_GRACE_S,
    START_TIMEOUT_S,
    STOP_TIMEOUT_S,
    Rig,
)
from penstock_lab.experiment.seat import ProcessSeat
from penstock_lab.experiment.together import Part, PartNoted, Together, TogetherNoted
from penstock_lab.experiment.visible_rows import batch_rows, spans
from penstock_lab.queries import Query, named

BACKLOG_TIMEOUT_S = 120.0
ADMISSION = (
    "batches",
    "moment_late_ms_p95",
    "moments_unasked",
    "decision_share",
    "planning_share",
)
"""What is noted of the server's account of a query's decisions."""


class JointBench(Protocol):
    """Bench for runs of several queries; `JointRig` is the real one."""

    def run_together(self, conditions: Together) -> TogetherNoted: ...


class JointSeat(ProcessSeat[JointBench]):
    """The seat of a process that runs several queries at once."""

    def run(self, conditions: Together) -> TogetherNoted:
        return self._outcome(
            lambda bench: bench.run_together(conditions), lambda error: TogetherNoted(error=error)
        )


@dataclass(frozen=True)
class JointNames:
    """A run's own streams and folder; the queries share their inputs."""

    queries: dict[str, Query]
    run: str
    folder: Path

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for q in self.queries.values() for name in q.inputs))

    @property
    def streams(self) -> dict[str, str]:
        stages = (stage.name for query in self.queries.values() for stage in query.stages)
        return {name: f"{self.run}_{name}" for name in (*self.inputs, *stages)}


class JointRig(Rig):
    """A rig on the log whose runs have several queries; each must have one stage and one input."""

    def run_together(self, conditions: Together) -> TogetherNoted:
        """One run from fresh streams to checked answers; what goes wrong is noted, not raised."""
        noted = TogetherNoted({part.query: PartNoted() for part in conditions.parts})
        run = f"together_{uuid4().hex[:8]}"
        queries = {part.query: named(part.query) for part in conditions.parts}
        names = JointNames(queries, run, self._folder / run)
        names.folder.mkdir()
        with self._noting_errors(noted, names.folder):
            self._measure_together(names, conditions, noted)
        if conditions.deletes_streams:
            self._delete_streams(names)
        return noted

    def _measure_together(
        self, names: JointNames, conditions: Together, noted: TogetherNoted
    ) -> None:
        queries = names.queries.values()
        with contextlib.ExitStack() as closing:
            workload = conditions.query_set.workload
            self._create_streams(workload, names.inputs, queries, names.streams)
            self._send_backlog(names, conditions)
            sender = self._joint_sender(names, conditions, "live")
            closing.callback(sender.stop)
            # A backlog is to be met with the first batch, so the live rows are made before.
            sender.wait_ready()
            observers = self._observers(names, noted)
            for observer in observers.values():
                closing.callback(observer.stop)
                observer.start()
            noted.started_ms = SYSTEM_CLOCK.wall_ms()
            ids = {
                part.query: self._start_part(names, part, conditions) for part in conditions.parts
            }
            self._let_send(sender, conditions, noted)
            stages: dict[str, Any] = {}
            if self._is_worked_off(conditions.drain_s):
                self._wait_all_seen(names, observers)
                stages = self._ask(Stop(), STOP_TIMEOUT_S)["stages"]
            else:
                noted.is_drained = False
                self._replace_engine()
            for query, query_ids in ids.items():
                self._look_back(names, query, query_ids, stages, noted)

    def _delete_streams(self, names: JointNames) -> None:
        """Give the log its room back; a stream that cannot go stays, and costs nothing but that."""
        assert self._client is not None
        for stream in names.streams.values():
            with contextlib.suppress(PenstockError):
                self._client.delete_stream(stream, force=True)

    def _send_backlog(self, names: JointNames, conditions: Together) -> None:
        if not conditions.backlog_rows:
            return
        with contextlib.ExitStack() as closing:
            sender = self._joint_sender(names, conditions, "backlog")
            closing.callback(sender.stop)
            sender.wait_ready()
            sender.go()
            sender.wait_report(BACKLOG_TIMEOUT_S)

    def _joint_sender(self, names: JointNames, conditions: Together, purpose: str) -> Sender:
        assert self._server is not None
        inputs = {name: names.streams[name] for name in names.inputs}
        load = conditions.load(inputs) if purpose == "live" else conditions.backlog(inputs)
        log = names.folder / f"sender-{purpose}.log"
        return Sender(load, log, f"{names.run}-{purpose}", self._server.address, None)

    def _observers(self, names: JointNames, noted: TogetherNoted) -> dict[str, LogObserver]:
        assert self._client is not None
        made = {}
        for name, query in names.queries.items():
            stream = names.streams[query.stages[-1].name]
            made[name] = LogObserver(self._client, stream, window_of(query))
            noted.parts[name].results = made[name].seen
        return made

    def _start_part(self, names: JointNames, part: Part, conditions: Together) -> dict[str, str]:
        start = Start(
            part.query,
            names.streams,
            str(names.folder),
            # A query that meets a backlog has nothing to wait for.
            is_awaited=not conditions.backlog_rows,
            every_s=part.every_s,
            options=part.options,
            pool=part.pool,
            conf=part.conf,
        )
        ids: dict[str, str] = self._ask(start, START_TIMEOUT_S)["ids"]
        return ids

    def _let_send(self, sender: Sender, conditions: Together, noted: TogetherNoted) -> None:
        """Processor time is that of the measured stretch."""
        sender.go()
        SYSTEM_CLOCK.sleep(conditions.warm_up_s)
        noted.cpu_s = cpu_in(self._pids(), conditions.measure_s)
        noted.report = sender.wait_report(conditions.tail_s + SENDER_GRACE_S)

    def _note_admission(self, query_id: str, part: PartNoted) -> None:
        """Note the server's account of its decisions; nothing of a query that stated no terms."""
        assert self._client is not None
        try:
            explained = self._client.explain(query_id)
        except PenstockError:
            return
        each = {name: getattr(explained, name) for name in ADMISSION}
        part.admission = {name: float(value) for name, value in each.items() if value is not None}
        if explained.devices is not None:
            part.planned = planned_batches(explained.devices)

    def _wait_all_seen(self, names: JointNames, observers: dict[str, LogObserver]) -> None:
        for name, observer in observers.items():
            self._wait_seen(names.streams[names.queries[name].stages[-1].name], observer)

    def _look_back(
        self,
        names: JointNames,
        name: str,
        ids: dict[str, str],
        stages: dict[str, Any],
        noted: TogetherNoted,
    ) -> None:
        """Learn when each input row was visible and what each batch took; check the answer."""
        assert self._client is not None
        query, part = names.queries[name], noted.parts[name]
        (stage,) = query.stages
        markers = self._client.markers(ids[stage.name])
        taken = batch_rows(self._client, names.streams[stage.reads[0]], markers)
        part.rows = [rows.sighting for rows in taken]
        if stage.name in stages:
            batches = msgspec.convert(stages[stage.name]["batches"], list[Timed])
            told_work = stages[stage.name]["work"]
            work = msgspec.convert(told_work, dict[int, tuple[float, float]], str_keys=True)
            part.batches = spans(batches, markers, taken, work)
            part.estimates_off = estimates_off(part.batches, self._cores)
            part.plan_notes = tuple(stages[stage.name]["notes"])
        self._note_admission(ids[stage.name], part)
        checked = self._check(self._client, query, ids, names.streams, names.folder)
        part.rows_checked, part.rows_different = checked.rows_checked, checked.rows_different
        part.differences = list(checked.first)
