"""What a system under test stands on: its server or folders, its Spark process, and one run on it.

A run goes, in this order, which its steps depend on:

1. fresh streams and checkpoints, so that nothing of an earlier run is read;
2. the sender makes its rows while Spark starts the query, both before time counts;
3. the observer is there before the first row;
4. the sender goes, and nobody waits for anything but its schedule;
5. what was sent is worked off, and the observer sees it all;
6. the query stops, and only then is its answer checked, so that the check costs nobody time.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock.client import Client
from penstock.errors import PenstockError, TryAgain
from penstock.spark import server_process
from penstock_lab.experiment.checks import Check
from penstock_lab.experiment.children import Engine, Late, Sender
from penstock_lab.experiment.driver import Drain, Setup, Start, Stop
from penstock_lab.experiment.outside_reader import FolderObserver, LogObserver, Observer
from penstock_lab.experiment.plan import Plan
from penstock_lab.experiment.record import Noted
from penstock_lab.experiment.suites import window_of
from penstock_lab.experiment.systems import System, system
from penstock_lab.queries import Query, named
from penstock_lab.workloads.load import WORKLOADS

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 30.0
SENDER_GRACE_S = 20.0
SEEN_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Names:
    """A run's own: what its streams and folders are called, so that no two runs share any."""

    query: Query
    run: str
    folder: Path
    rate: int

    @property
    def streams(self) -> dict[str, str]:
        stages = (stage.name for stage in self.query.stages)
        return {name: f"{self.run}_{name}" for name in (*self.query.inputs, *stages)}

    @property
    def rows(self) -> Path:
        return self.folder / "rows"


class Rig:
    """One server, one Spark process; `run` may be called again and again. Close it."""

    def __init__(self, plan: Plan, name: str, folder: Path, check: Check) -> None:
        self._plan = plan
        self._system: System = system(name)
        self._folder = folder
        self._check = check
        self._closing = contextlib.ExitStack()
        self._client: Client | None = None
        self._server: server_process.OwnServer | None = None
        self._engine: Engine | None = None

    def __enter__(self) -> Rig:
        try:
            self._open()
        except BaseException:
            self.close(at_once=True)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(at_once=kind is not None)

    def close(self, *, at_once: bool = False) -> None:
        """`at_once` leaves Spark no time to come to an end by itself."""
        try:
            if self._engine is not None:
                self._engine.stop(at_once=at_once)
        finally:
            self._closing.close()

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._system.rows == "log":
            self._server = server_process.start(self._folder / "data")
            self._closing.callback(self._server.stop)
            found = self._server.address
            self._client = self._closing.enter_context(Client(found.url, found.token, found.ca))
        self._start_engine()

    def _start_engine(self) -> None:
        log = str(self._folder / "spark.log")
        setup = Setup(self._system.name, self._plan.cores, log, self._plan.store)
        self._engine = Engine(setup, self._server.address if self._server else None)
        self._engine.wait_ready()

    def run(self, query_name: str, warm_up_s: float, rate: int | None = None) -> Noted:
        """One run from fresh streams to a checked answer; what goes wrong is noted, not raised.

        `rate` is the plan's unless given. Spark is started anew after a run that it did not come
        out of by itself.
        """
        noted = Noted()
        parameters = {"redis": self._plan.redis} if self._plan.redis else {}
        query = named(query_name, **parameters)
        run = f"{query.name}_{uuid4().hex[:8]}"
        names = Names(query, run, self._folder / run, rate or self._plan.rate_of(query.name))
        names.folder.mkdir()
        try:
            self._measure(names, parameters, warm_up_s, noted)
        except Late as error:
            noted.error = error.message
            self._replace_engine()  # it may be at that run for ever
        except PenstockError as error:
            noted.error = error.message
            with contextlib.suppress(PenstockError):
                self._ask(Stop(), STOP_TIMEOUT_S)
        shutil.rmtree(names.folder, ignore_errors=True)
        return noted

    def _measure(
        self, names: Names, parameters: dict[str, Any], warm_up_s: float, noted: Noted
    ) -> None:
        with contextlib.ExitStack() as closing:
            self._create(names)  # 1
            sender = self._sender(names, warm_up_s)  # 2
            closing.callback(sender.stop)
            start = Start(names.query.name, names.streams, str(names.folder), parameters)
            ids = self._ask(start, START_TIMEOUT_S)["ids"]
            sender.wait_ready()
            observer = self._observer(names)  # 3
            closing.callback(observer.stop)
            observer.start()
            noted.sightings = observer.seen
            sender.go()  # 4
            seconds = warm_up_s + self._plan.measure_s
            noted.told = sender.wait_report(seconds + SENDER_GRACE_S)
            if self._is_worked_off():  # 5
                self._wait_seen(names, observer)
                noted.phases = self._ask(Stop(), STOP_TIMEOUT_S)["phases"]  # 6
            else:
                noted.is_drained = False
                self._replace_engine()
            found = self._check(self._client, names.query, ids, names.streams, names.folder)
            noted.rows_checked, noted.rows_different = found.rows_checked, found.rows_different
            noted.differences = list(found.first)

    def _create(self, names: Names) -> None:
        if self._client is None:
            return
        workload = WORKLOADS[self._plan.described.workload]
        for name in names.query.inputs:
            self._client.create(
                names.streams[name], workload.stream_schema(name), substreams=self._plan.cores
            )
        for stage in names.query.stages:
            self._client.create(
                names.streams[stage.name],
                stage.columns,
                substreams=self._plan.cores,
                key=stage.route or None,
            )

    def _sender(self, names: Names, warm_up_s: float) -> Sender:
        on_log = self._server is not None
        called = {name: names.streams[name] if on_log else name for name in names.query.inputs}
        return Sender(
            self._plan.at(names.rate).load(
                names.query.name, called, warm_up_s, to_files=not on_log
            ),
            names.folder / "sender.log",
            names.run,
            self._server.address if self._server is not None else None,
            None if on_log else names.rows,
        )

    def _observer(self, names: Names) -> Observer:
        window, last = window_of(names.query), names.query.stages[-1].name
        if self._client is not None:
            return LogObserver(self._client, names.streams[last], window)
        return FolderObserver(names.rows / last, window)

    def _is_worked_off(self) -> bool:
        try:
            self._ask(Drain(), self._plan.drain_s)
        except Late:
            return False
        return True

    def _wait_seen(self, names: Names, observer: Observer) -> None:
        """The observer is behind what is committed by the way to it, and by no more."""
        if self._client is not None:
            last = names.streams[names.query.stages[-1].name]
            written = self._client.describe(last).rows
            if not observer.wait_rows(written, SEEN_TIMEOUT_S):
                raise TryAgain(
                    f"{written} rows are committed, and a reader that follows saw {observer.rows}",
                    code="rows_not_seen",
                )
        if observer.error is not None:
            raise observer.error

    def _ask(self, command: Start | Drain | Stop, timeout_s: float) -> dict[str, Any]:
        assert self._engine is not None
        return self._engine.ask(command, timeout_s)

    def _replace_engine(self) -> None:
        if self._engine is not None:
            self._engine.kill()
        self._start_engine()
