"""Runs of several queries at once: one server, one Spark process, one sender.

A run goes as one of a single query (`rig`), with these differences: a backlog is sent before the
queries start; each query has a reader of its own; when all is worked off, the input is read again,
batch by batch as the markers name it, to learn when each row was visible.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import msgspec
import psutil

from penstock.clock import SYSTEM_CLOCK
from penstock.errors import PenstockError, TryAgain
from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.children import Sender
from penstock_lab.experiment.driver import Start, Stop
from penstock_lab.experiment.estimates import estimates_off
from penstock_lab.experiment.outside_reader import LogObserver
from penstock_lab.experiment.query_sets import window_of
from penstock_lab.experiment.rig import (
    SEEN_TIMEOUT_S,
    SENDER_GRACE_S,
    START_TIMEOUT_S,
    STOP_TIMEOUT_S,
    Rig,
)
from penstock_lab.experiment.together import Part, PartNoted, Together, TogetherNoted
from penstock_lab.experiment.visible_rows import batch_rows, spans
from penstock_lab.processes import Late
from penstock_lab.queries import Query, named
from penstock_lab.workloads.load import WORKLOADS

BACKLOG_TIMEOUT_S = 120.0
ADMISSION = ("moment_late_ms_p95", "decision_share")


class JointBench(Protocol):
    """Bench for runs of several queries; `JointRig` is the real one."""

    def run_together(self, conditions: Together) -> TogetherNoted: ...


class JointSeat:
    """A Spark process's place in a suite: its bench, or why it has none."""

    def __init__(self, bench: JointBench | None, error: str | None = None) -> None:
        self._bench = bench
        self._error = error
        self.is_warm = False
        """Only the first run of a process meets code that is not compiled yet."""

    @classmethod
    def taken(
        cls, closing: contextlib.ExitStack, opened: contextlib.AbstractContextManager[JointBench]
    ) -> JointSeat:
        """A process that does not start is a result; the others go on."""
        try:
            return cls(closing.enter_context(opened))
        except PenstockError as error:
            return cls(None, error.message)

    def run(self, conditions: Together) -> TogetherNoted:
        """The run's outcome is noted, also if there is no process or it cannot be replaced."""
        if self._bench is None:
            return TogetherNoted(error=self._error)
        self.is_warm = True
        try:
            return self._bench.run_together(conditions)
        except PenstockError as error:
            self._bench, self._error = None, error.message
            return TogetherNoted(error=error.message)


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
        try:
            self._measure_together(names, conditions, noted)
        except Late as error:
            noted.error = error.message
            self._replace_engine()  # it may be at that run for ever
        except PenstockError as error:
            noted.error = error.message
            with contextlib.suppress(PenstockError):
                self._ask(Stop(), STOP_TIMEOUT_S)
        shutil.rmtree(names.folder, ignore_errors=True)
        return noted

    def _measure_together(
        self, names: JointNames, conditions: Together, noted: TogetherNoted
    ) -> None:
        with contextlib.ExitStack() as closing:
            self._create_streams(names, conditions)
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

    def _create_streams(self, names: JointNames, conditions: Together) -> None:
        assert self._client is not None
        workload = WORKLOADS[conditions.query_set.workload]
        for name in names.inputs:
            schema = workload.stream_schema(name)
            self._client.create(names.streams[name], schema, substreams=self._cores)
        for query in names.queries.values():
            for stage in query.stages:
                self._client.create(
                    names.streams[stage.name],
                    stage.columns,
                    substreams=self._cores,
                    key=stage.route or None,
                )

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
        )
        ids: dict[str, str] = self._ask(start, START_TIMEOUT_S)["ids"]
        return ids

    def _let_send(self, sender: Sender, conditions: Together, noted: TogetherNoted) -> None:
        """Processor time is taken where the measured stretch begins and where it ends."""
        sender.go()
        SYSTEM_CLOCK.sleep(conditions.warm_up_s)
        before_s = self._cpu_s()
        SYSTEM_CLOCK.sleep(conditions.measure_s)
        after_s = self._cpu_s()
        noted.report = sender.wait_report(conditions.tail_s + SENDER_GRACE_S)
        if before_s is not None and after_s is not None:
            noted.cpu_s = after_s - before_s

    def _cpu_s(self) -> float | None:
        """Processor time so far of the driver, what it has started, and the server."""
        if self._engine is None or self._server is None:
            return None
        try:
            driver = psutil.Process(self._engine.pid)
            each = [driver, *driver.children(recursive=True), psutil.Process(self._server.pid)]
            times = [process.cpu_times() for process in each]
        except psutil.Error:
            return None
        return float(sum(time.user + time.system for time in times))

    def _admission(self, query_id: str) -> dict[str, float]:
        """The server's account of its decisions; empty of a query that stated no terms."""
        assert self._client is not None
        try:
            explained = self._client.explain(query_id)
        except PenstockError:
            return {}
        each = {name: getattr(explained, name) for name in ADMISSION}
        return {name: float(value) for name, value in each.items() if value is not None}

    def _wait_all_seen(self, names: JointNames, observers: dict[str, LogObserver]) -> None:
        assert self._client is not None
        for name, observer in observers.items():
            stream = names.streams[names.queries[name].stages[-1].name]
            written = self._client.describe(stream).rows
            if not observer.wait_rows(written, SEEN_TIMEOUT_S):
                raise TryAgain(
                    f"{written} rows of {name} are committed, and a reader that follows saw "
                    f"{observer.rows}",
                    code="rows_not_seen",
                )
            if observer.error is not None:
                raise observer.error

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
        part.admission = self._admission(ids[stage.name])
        checked = self._check(self._client, query, ids, names.streams, names.folder)
        part.rows_checked, part.rows_different = checked.rows_checked, checked.rows_different
        part.differences = list(checked.first)
