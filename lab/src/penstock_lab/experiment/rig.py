"""The rig of a system under test: its server or folders, its Spark process, and one run on it.

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
from penstock.clock import SYSTEM_CLOCK
from penstock.errors import PenstockError, TryAgain
from penstock.spark import server_process
from penstock.testing.nats_servers import NatsServers
from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.checkpoint_files import snapshot_bytes
from penstock_lab.experiment.checks import Check, with_oracle
from penstock_lab.experiment.children import Engine, Sender
from penstock_lab.experiment.driver_commands import Command, Drain, Look, Setup, Start, Stop, Tell
from penstock_lab.experiment.files import is_committed
from penstock_lab.experiment.outside_reader import FolderObserver, LogObserver, Observer
from penstock_lab.experiment.plan import Conditions
from penstock_lab.experiment.processor_time import cpu_in
from penstock_lab.experiment.query_sets import window_of
from penstock_lab.experiment.record import Noted
from penstock_lab.experiment.seat import ProcessSeat
from penstock_lab.experiment.systems import System, system
from penstock_lab.processes import Late
from penstock_lab.queries import Query, named
from penstock_lab.workloads.load import WORKLOADS

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 30.0
SENDER_GRACE_S = 20.0
SEEN_TIMEOUT_S = 10.0
LOOK_EVERY_S = 0.2


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


class Notes(Protocol):
    """Notes of a run: why it came to no end, if it did not."""

    error: str | None


class Bench(Protocol):
    """The bench that runs are made on; `Rig` is the real one."""

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
            self._server = server_process.start(self._folder / "data", log=self._log_servers())
            self._closing.callback(self._server.stop)
            address = self._server.address
            client = Client(address.url, address.token, address.ca)
            self._client = self._closing.enter_context(client)
        self._start_engine()

    def _log_servers(self) -> str | None:
        """The address of a log on servers of its own, started here; None: it needs none."""
        if self._system.replicas == 1:
            return None
        try:
            servers = NatsServers(self._folder / "nats", self._system.replicas)
            return self._closing.enter_context(servers).url
        except (FileNotFoundError, TimeoutError) as error:
            raise TryAgain(str(error), code="server_not_started") from error

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
    def _noting_errors(self, noted: Notes, folder: Path) -> Iterator[None]:
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
            self._send(sender, conditions, noted)  # 4
            if self._is_worked_off(conditions.drain_s):  # 5
                self._wait_seen(names.streams[names.query.stages[-1].name], observer)
                self._wait_committed(names)
                self._note(self._ask(Stop(), STOP_TIMEOUT_S), noted)  # 6
            else:
                noted.is_drained = False
                self._replace_engine()
            checked = self._check(self._client, names.query, ids, names.streams, names.folder)
            noted.rows_checked, noted.rows_different = checked.rows_checked, checked.rows_different
            noted.differences = list(checked.first)
            if self._tells_commits:
                noted.snapshot_bytes = snapshot_bytes(names.folder / "checkpoints")

    def _send(self, sender: Sender, conditions: Conditions, noted: Noted) -> None:
        """Let the sender send until its schedule ends, or the measured stretch does before it.

        What the batches took by then is noted, should they never end.
        """
        before = self._last_batches() if conditions.warm_up_batches else {}
        sender.go()
        if conditions.warm_up_batches:
            noted.warm_up_batches = self._warm_up(conditions, before)
            noted.warm_ms = SYSTEM_CLOCK.wall_ms()
            noted.cpu_s = cpu_in(self._pids(), conditions.measure_s)
            sender.cut_short()
        elif self._tells_commits:
            SYSTEM_CLOCK.sleep(conditions.warm_up_s)
            noted.cpu_s = cpu_in(self._pids(), conditions.measure_s)
        noted.sender_report = sender.wait_report(conditions.seconds + SENDER_GRACE_S)
        if self._tells_commits:
            self._note_commits(self._ask(Tell(), STOP_TIMEOUT_S), noted)

    def _pids(self) -> list[int]:
        return [each.pid for each in (self._engine, self._server) if each is not None]

    def _warm_up(self, conditions: Conditions, before: Mapping[str, int]) -> int:
        """Wait for so many batches of every stage, within bounds; the least number there were."""
        began_s = SYSTEM_CLOCK.monotonic_s()
        while True:
            last = self._last_batches()
            made = min(last[stage] - number for stage, number in before.items())
            past_s = SYSTEM_CLOCK.monotonic_s() - began_s
            is_warm = made >= conditions.warm_up_batches and past_s >= conditions.warm_up_least_s
            if is_warm or past_s >= conditions.warm_up_s:
                return made
            SYSTEM_CLOCK.sleep(LOOK_EVERY_S)

    def _last_batches(self) -> dict[str, int]:
        """Of every stage the number of the last batch that has ended; -1 before the first."""
        batches: dict[str, int] = self._ask(Look(), STOP_TIMEOUT_S)["batches"]
        return batches

    def _note(self, said: dict[str, Any], noted: Noted) -> None:
        noted.phases = said["phases"]
        if self._tells_commits:
            self._note_commits(said, noted)

    def _note_commits(self, said: dict[str, Any], noted: Noted) -> None:
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

    def _wait_committed(self, names: Names) -> None:
        """Between files the answer is checked by Spark's commit log, which may follow behind."""
        until_s = SYSTEM_CLOCK.monotonic_s() + SEEN_TIMEOUT_S
        stage = names.query.stages[-1].name
        while self._client is None and not is_committed(names.folder, stage):
            if SYSTEM_CLOCK.monotonic_s() > until_s:
                raise TryAgain(
                    f"the sink of {stage} shows a batch that its commit log did not have within "
                    f"{SEEN_TIMEOUT_S:g} s",
                    code="rows_not_seen",
                )
            SYSTEM_CLOCK.sleep(LOOK_EVERY_S)

    def _ask(self, command: Command, timeout_s: float) -> dict[str, Any]:
        assert self._engine is not None
        return self._engine.ask(command, timeout_s)

    def _replace_engine(self) -> None:
        if self._engine is not None:
            self._engine.kill()
        self._start_engine()
