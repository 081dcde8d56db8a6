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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self
from uuid import uuid4

import msgspec

from penstock.client import Client
from penstock.errors import PenstockError, TryAgain
from penstock.spark import server_process
from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.checks import Check, with_oracle
from penstock_lab.experiment.children import Engine, Sender
from penstock_lab.experiment.driver import Drain, Setup, Start, Stop
from penstock_lab.experiment.outside_reader import FolderObserver, LogObserver, Observer
from penstock_lab.experiment.plan import Conditions
from penstock_lab.experiment.query_sets import window_of
from penstock_lab.experiment.record import Noted
from penstock_lab.experiment.seat import ProcessSeat
from penstock_lab.experiment.systems import System, system
from penstock_lab.experiment.together import TogetherNoted
from penstock_lab.processes import Late
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

    @property
    def streams(self) -> dict[str, str]:
        stages = (stage.name for stage in self.query.stages)
        return {name: f"{self.run}_{name}" for name in (*self.query.inputs, *stages)}

    @property
    def rows(self) -> Path:
        return self.folder / "rows"


class Bench(Protocol):
    """What runs are made on; `Rig` is the real one."""

    def run(self, conditions: Conditions) -> Noted: ...


class Seat(ProcessSeat[Bench]):
    """The seat of a process that runs one query at a time."""

    def run(self, conditions: Conditions) -> Noted:
        return self._outcome(lambda bench: bench.run(conditions), lambda error: Noted(error=error))


class Rig:
    """One server, one Spark process; `run` may be called again and again. Close it."""

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        cores: int,
        check: Check = with_oracle,
        conf: Mapping[str, str] | None = None,
        tells_commits: bool = False,
    ) -> None:
        self._system: System = system(name)
        self._folder = folder
        self._cores = cores
        self._check = check
        self._conf = dict(conf or {})
        self._tells_commits = tells_commits
        self._closing = contextlib.ExitStack()
        self._client: Client | None = None
        self._server: server_process.OwnServer | None = None
        self._engine: Engine | None = None

    def __enter__(self) -> Self:
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
            address = self._server.address
            client = Client(address.url, address.token, address.ca)
            self._client = self._closing.enter_context(client)
        self._start_engine()

    def _start_engine(self) -> None:
        log = str(self._folder / "spark.log")
        setup = Setup(self._system.name, self._cores, log, self._conf, self._tells_commits)
        self._engine = Engine(setup, self._server.address if self._server else None)
        self._engine.wait_ready()

    def run(self, conditions: Conditions) -> Noted:
        """One run from fresh streams to a checked answer; what goes wrong is noted, not raised.

        Spark is started anew after a run that it did not come out of by itself.
        """
        noted = Noted()
        parameters = {"redis": conditions.redis} if conditions.redis else {}
        query = named(conditions.query, **parameters)
        run = f"{query.name}_{uuid4().hex[:8]}"
        names = Names(query, run, self._folder / run)
        names.folder.mkdir()
        start = Start(
            query.name,
            names.streams,
            str(names.folder),
            parameters,
            store=conditions.store,
            every_s=conditions.every_s,
            options=conditions.options,
        )
        with self._noting_errors(noted, names.folder):
            self._measure(names, conditions, start, noted)
        return noted

    @contextlib.contextmanager
    def _noting_errors(self, noted: Noted | TogetherNoted, folder: Path) -> Iterator[None]:
        """A run's errors are noted, its folder goes, and the process is fit for the next one."""
        try:
            yield
        except Late as error:
            noted.error = error.message
            self._replace_engine()  # it may be at that run for ever
        except PenstockError as error:
            noted.error = error.message
            with contextlib.suppress(PenstockError):
                self._ask(Stop(), STOP_TIMEOUT_S)
        shutil.rmtree(folder, ignore_errors=True)

    def _measure(self, names: Names, conditions: Conditions, start: Start, noted: Noted) -> None:
        with contextlib.ExitStack() as closing:
            self._create(names, conditions)  # 1
            sender = self._sender(names, conditions)  # 2
            closing.callback(sender.stop)
            ids = self._ask(start, START_TIMEOUT_S)["ids"]
            sender.wait_ready()
            observer = self._observer(names)  # 3
            closing.callback(observer.stop)
            observer.start()
            noted.sightings = observer.seen
            sender.go()  # 4
            noted.told = sender.wait_report(conditions.seconds + SENDER_GRACE_S)
            if self._is_worked_off(conditions.drain_s):  # 5
                self._wait_seen(names.streams[names.query.stages[-1].name], observer)
                self._note(self._ask(Stop(), STOP_TIMEOUT_S), noted)  # 6
            else:
                noted.is_drained = False
                self._replace_engine()
            checked = self._check(self._client, names.query, ids, names.streams, names.folder)
            noted.rows_checked, noted.rows_different = checked.rows_checked, checked.rows_different
            noted.differences = list(checked.first)

    def _note(self, said: dict[str, Any], noted: Noted) -> None:
        noted.phases = said["phases"]
        if self._tells_commits:
            noted.batches = msgspec.convert(said["batches"], list[Timed])
            noted.steps, noted.rss_mb = said["steps"], said["rss_mb"]

    def _create(self, names: Names, conditions: Conditions) -> None:
        if self._client is not None:
            workload = conditions.query_set.workload
            self._create_streams(workload, names.query.inputs, [names.query], names.streams)

    def _create_streams(
        self,
        workload: str,
        inputs: Iterable[str],
        queries: Iterable[Query],
        streams: Mapping[str, str],
    ) -> None:
        """The inputs, as the workload has them, and the output of every stage of the queries."""
        assert self._client is not None
        for name in inputs:
            schema = WORKLOADS[workload].stream_schema(name)
            self._client.create(streams[name], schema, substreams=self._cores)
        for stage in (stage for query in queries for stage in query.stages):
            self._client.create(
                streams[stage.name], stage.columns, substreams=self._cores, key=stage.route or None
            )

    def _sender(self, names: Names, conditions: Conditions) -> Sender:
        on_log = self._server is not None
        called = {name: names.streams[name] if on_log else name for name in names.query.inputs}
        return Sender(
            conditions.load(called, to_files=not on_log),
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

    def _is_worked_off(self, drain_s: float) -> bool:
        try:
            self._ask(Drain(), drain_s)
        except Late:
            return False
        return True

    def _wait_seen(self, stream: str, observer: Observer) -> None:
        """The observer is behind what is committed by the way to it, and by no more."""
        if self._client is not None:
            written = self._client.describe(stream).rows
            if not observer.wait_rows(written, SEEN_TIMEOUT_S):
                raise TryAgain(
                    f"{written} rows of {stream} are committed, and a reader that follows saw "
                    f"{observer.rows}",
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
