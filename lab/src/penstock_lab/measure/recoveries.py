"""Recoveries of a running query: what is killed with SIGKILL, and the time to its next marker.

A run goes from a filled state, rows coming all the while, in this order:

1. a driver starts the query; some batches later it is killed, and a new one is started at once:
   `driver.cold` has the start of its process in it;
2. some batches later a second driver is up and waits; the first is killed, and the second starts
   the query: `driver.warm`;
3. some batches later the server is killed and started again: `server`;
4. the rows end, what was sent is worked off, and the answer is checked.

On a cluster step 1 is an executor that is killed instead, and there is no other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import psutil

from penstock.client import MarkerLine
from penstock.clock import SYSTEM_CLOCK
from penstock.errors import PenstockError, TryAgain
from penstock_lab.experiment.checks import Check, with_oracle
from penstock_lab.experiment.children import Engine, Sender
from penstock_lab.experiment.driver_commands import Drain, Look, Setup, Start, Stop
from penstock_lab.experiment.filled import FilledConditions, FilledState
from penstock_lab.experiment.filled_room import FilledRoom
from penstock_lab.measure.local_cluster import CONF as CLUSTER_CONF
from penstock_lab.measure.local_cluster import LocalCluster
from penstock_lab.queries import named

DRIVER_COLD, DRIVER_WARM, SERVER, EXECUTOR = "driver.cold", "driver.warm", "server", "executor"
LOCAL_KILLS = (DRIVER_COLD, DRIVER_WARM, SERVER)
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
MARKER_TIMEOUT_S = 180.0
POLL_S = 0.02
LOOK_EVERY_S = 2.0

IsNew: TypeAlias = Callable[[MarkerLine], bool]
"""Whether a marker was made after the kill, by what is left or has taken over."""


class RecoverySystem(msgspec.Struct, frozen=True):
    """A system whose recovery is measured: one of the laboratory's, and settings beyond it."""

    name: str
    system: str
    words: str
    conf: dict[str, str] = {}
    has_archive: bool = False
    """Whether its drivers start with an archive of Spark's classes."""
    filled_as: str | None = None
    """The system whose filled state it goes on from; None: its own."""


class Recovered(msgspec.Struct, frozen=True):
    """One run: milliseconds from each kill to the first new marker, and its answer."""

    system: str
    repeat: int
    ms: dict[str, float] = {}
    rows_checked: int = 0
    rows_different: int = 0
    differences: tuple[str, ...] = ()
    error: str | None = None

    @property
    def is_right(self) -> bool:
        return self.rows_different == 0

    @property
    def is_counted(self) -> bool:
        return self.is_right and self.error is None and self.rows_checked > 0


class RecoveryTerms(msgspec.Struct, frozen=True):
    """Terms of a run: rows that come, and batches between two kills."""

    rate: int
    batches_between: int
    cores: int = 2
    seconds_max: float = 300.0
    generator: dict[str, Any] = {}


class RecoveryRun:
    """One run of a system in a room; `kills` says how far it goes."""

    def __init__(
        self,
        system: RecoverySystem,
        room: FilledRoom,
        filled: FilledState,
        terms: RecoveryTerms,
        folder: Path,
        archives: Path | None = None,
        check: Check = with_oracle,
    ) -> None:
        self._system = system
        self._archives = archives if system.has_archive else None
        self._room = room
        self._filled = filled
        self._terms = terms
        self._folder = folder
        self._check = check
        self._engine: Engine | None = None
        self._query_id = ""
        self._ms: dict[str, float] = {}

    def run(self, repeat: int, kills: tuple[str, ...] = LOCAL_KILLS) -> Recovered:
        """All kills, one after the other; an error is kept with what was measured before."""
        name = self._system.name
        self._folder.mkdir(parents=True, exist_ok=True)
        self._room.put_back(Path(self._filled.folder))
        try:
            with contextlib.ExitStack() as closing:
                cluster = None
                if EXECUTOR in kills:
                    opened = LocalCluster(self._folder / f"cluster-{repeat}")
                    cluster = closing.enter_context(opened)
                sender = closing.enter_context(self._sending(repeat))
                closing.callback(self._stop_engine)
                self._engine = self._new_engine(cluster)
                ids = self._start()
                sender.go()
                for kill in kills:
                    self._wait_batches(self._terms.batches_between)
                    self._ms[kill] = self._kill(kill, cluster)
                self._wait_batches(self._terms.batches_between)
                sender.cut_short()
                sender.wait_report(STOP_TIMEOUT_S)
                self._ask(Drain(), MARKER_TIMEOUT_S)
                self._ask(Stop(), STOP_TIMEOUT_S)
                return self._checked(repeat, ids)
        except PenstockError as error:
            return Recovered(name, repeat, self._ms, error=error.message)

    def _kill(self, kill: str, cluster: LocalCluster | None) -> float:
        """Milliseconds from the kill to the first marker that what is left has made."""
        assert self._engine is not None
        dead = self._engine
        if kill == SERVER:
            return self._until_marker(lambda _: self._server_restarted())
        if kill == EXECUTOR:
            assert cluster is not None
            cluster.wait_executors()
            executor = cluster.executors()[0]
            return self._until_marker(lambda last: self._executor_lost(executor, last))
        if kill == DRIVER_WARM:
            standby = self._new_engine(cluster)
            return self._until_marker(lambda last: self._taken_over(dead, lambda: standby, last))
        return self._until_marker(
            lambda last: self._taken_over(dead, lambda: self._new_engine(cluster), last)
        )

    def _server_restarted(self) -> IsNew:
        self._room.kill_server()
        gone_ms = SYSTEM_CLOCK.wall_ms()
        self._room.start_server()
        return lambda marker: bool(marker.arrived_at_ms >= gone_ms)

    def _executor_lost(self, executor: psutil.Process, last: MarkerLine) -> IsNew:
        """The driver lives on, and may mark the batch whose tasks had ended before: the one after
        it has to be run by what is left."""
        executor.kill()
        return lambda marker: bool(marker.batch > last.batch + 1)

    def _taken_over(
        self, dead: Engine, next_engine: Callable[[], Engine], last: MarkerLine
    ) -> IsNew:
        dead.kill()
        self._engine = next_engine()
        self._start()
        return lambda marker: bool(marker.instance > last.instance)

    def _until_marker(self, kill: Callable[[MarkerLine], IsNew]) -> float:
        """Milliseconds from the kill, which says by what its recovery is known."""
        last = self._last_marker()
        killed_ms = SYSTEM_CLOCK.wall_ms()
        is_new = kill(last)
        until_s = SYSTEM_CLOCK.monotonic_s() + MARKER_TIMEOUT_S
        while SYSTEM_CLOCK.monotonic_s() < until_s:
            markers = self._room.client.markers(self._query_id, last.batch)
            after = [marker.arrived_at_ms for marker in markers if is_new(marker)]
            if after:
                return float(min(after) - killed_ms)
            SYSTEM_CLOCK.sleep(POLL_S)
        raise TryAgain(
            f"no marker came within {MARKER_TIMEOUT_S:g} s after the kill", code="query_failed"
        )

    def _new_engine(self, cluster: LocalCluster | None) -> Engine:
        conf = {**self._system.conf, **(CLUSTER_CONF if cluster is not None else {})}
        log = str(self._folder / "spark.log")
        master = None if cluster is None else cluster.url
        setup = Setup(self._system.system, self._terms.cores, log, conf, True, master)
        engine = Engine(setup, self._room.server.address, archives=self._archives)
        engine.wait_ready()
        return engine

    def _stop_engine(self) -> None:
        if self._engine is not None:
            self._engine.stop(at_once=True)

    def _start(self) -> dict[str, str]:
        filled = self._filled
        start = Start(filled.query, filled.streams, str(self._room.run), is_awaited=False)
        ids: dict[str, str] = self._ask(start, START_TIMEOUT_S)["ids"]
        if ids != filled.ids:
            raise TryAgain(f"{filled.query} did not go on from its checkpoint", code="query_failed")
        (self._query_id,) = ids.values()
        return ids

    @contextlib.contextmanager
    def _sending(self, repeat: int) -> Iterator[Sender]:
        query = named(self._filled.query)
        conditions = FilledConditions(
            query.name,
            self._terms.rate,
            seconds_max=self._terms.seconds_max,
            generator=self._terms.generator,
        )
        inputs = {name: self._filled.streams[name] for name in query.inputs}
        load = conditions.load(inputs, self._filled.next_event)
        log = self._folder / "sender.log"
        sender = Sender(load, log, f"{self._folder.name}-{repeat}", self._room.server.address, None)
        try:
            sender.wait_ready()
            yield sender
        finally:
            sender.stop()

    def _last_marker(self) -> MarkerLine:
        return self._room.client.markers(self._query_id, self._batch() - 1)[-1]

    def _batch(self) -> int:
        marker = self._room.client.query(self._query_id).marker
        return -1 if marker is None else int(marker.batch)

    def _wait_batches(self, count: int) -> None:
        enough, until_s = self._batch() + count, SYSTEM_CLOCK.monotonic_s() + MARKER_TIMEOUT_S
        looked_s = SYSTEM_CLOCK.monotonic_s()
        while self._batch() < enough:
            now_s = SYSTEM_CLOCK.monotonic_s()
            if now_s - looked_s > LOOK_EVERY_S:
                self._ask(Look(), STOP_TIMEOUT_S)
                looked_s = now_s
            if now_s > until_s:
                raise TryAgain(
                    f"{count} batches were not committed in {MARKER_TIMEOUT_S:g} s",
                    code="query_failed",
                )
            SYSTEM_CLOCK.sleep(POLL_S)

    def _ask(self, command: Start | Look | Drain | Stop, timeout_s: float) -> dict[str, Any]:
        assert self._engine is not None
        return self._engine.ask(command, timeout_s)

    def _checked(self, repeat: int, ids: dict[str, str]) -> Recovered:
        query = named(self._filled.query)
        checked = self._check(self._room.client, query, ids, self._filled.streams, self._room.run)
        return Recovered(
            self._system.name,
            repeat,
            self._ms,
            checked.rows_checked,
            checked.rows_different,
            tuple(checked.first[:5]),
        )
