"""The log in JetStream: operations go out as messages, and every server applies what comes back."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.log.address import LogAddress
from penstock.log.backends.jetstream.applier import Applier
from penstock.log.backends.jetstream.codec import VERSION, OperationId, void_message
from penstock.log.backends.jetstream.connection import REQUEST_S, Connection
from penstock.log.backends.jetstream.follower import Follower
from penstock.log.backends.jetstream.half_published import HalfPublished
from penstock.log.backends.jetstream.opening import (
    QUIET_S,
    SAY_AGAIN_S,
    Index,
    named,
    open_index,
    reach,
)
from penstock.log.backends.jetstream.publisher import Publisher
from penstock.log.backends.jetstream.replay import Outcome, log_version, open_operation
from penstock.log.backends.jetstream.state_stream import Keeper
from penstock.log.backends.jetstream.stream import StreamState, promise
from penstock.log.backends.keep_running import going_on
from penstock.log.backends.local import LocalLog
from penstock.log.backends.outcomes import News
from penstock.log.decide.records import check_record
from penstock.log.operations import Operation, Trimmed
from penstock.log.store.folder import Folder
from penstock.model.ids import BEFORE_ALL, Lsn
from penstock.settings.server import KIB, Settings

_LOG = logging.getLogger("penstock.log")
META_BYTES = 64 << 10
WATCH_S = 1.0
OPEN_S_MAX = 30.0
ENTRY_BYTES = 100
AGREED = ("producers_max", "producer_kept_ms_min")
PURGE_VERSION = (2, 10)
"""From which version on a server purges by itself. With 2.9.10, killing one of three while subjects
were purged left replicas with different messages, every time it was tried."""


class JetStreamLog(LocalLog):
    """One server's door to a log that others may have open too."""

    def __init__(
        self,
        folder: Folder,
        index: Index,
        settings: Settings,
        clock: Clock,
        connection: Connection,
        state: StreamState,
        keeper: Keeper,
    ) -> None:
        super().__init__(folder, index.env, index.tables, settings, clock)
        self._connection = connection
        self._state = state
        self._keeper = keeper
        self._keeping: threading.Thread | None = None
        self._trimmed_bytes = 0
        self._announced = BEFORE_ALL
        applied = index.applied if index.refill is None else BEFORE_ALL
        self._applier = Applier(
            index.env, index.tables, settings, clock, applied, self._applied, self._is_purged,
            index.refill,
        )  # fmt: skip
        self._publisher = Publisher(connection, self._applier, self.reading, settings)
        self._follower = Follower(connection, self._applier, state)
        self._tasks: list[Future[None]] = []
        self.operations = 0

    @staticmethod
    def open(
        path: Path,
        address: LogAddress,
        settings: Settings | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> JetStreamLog:
        """Open the log at `address`, with its index in the folder `path`.

        1. lock the folder, so that no other server touches its index;
        2. connect and find or make the stream, waiting with a message while it cannot be reached;
        3. take the index that is there, or a new one if that cannot be gone on with;
        4. apply what the stream has that the index does not, and only then answer anything.
        """
        settings = settings or Settings()
        folder = Folder.open_index(path)
        connection = Connection(address)
        try:
            reached = reach(connection, settings, clock)
            index = open_index(folder, address, reached, settings)
            state = reached.stream
            bounded = _bounded(settings, connection, state)
            log = JetStreamLog(folder, index, bounded, clock, connection, state, reached.keeper)
            log._start()
        except BaseException:
            connection.close()
            folder.close()
            raise
        return log

    def _start(self) -> None:
        self._applier.start()
        for work in (self._follower.run(), self._publisher.run(), self._watch()):
            self._tasks.append(asyncio.run_coroutine_threadsafe(work, self._connection.loop))
        while not self._applier.wait_until(self._state.last, SAY_AGAIN_S):
            self._check_whole()
            _LOG.warning(
                "the index of the log in %s has come to %d of %d messages",
                self.folder.path, self._applier.applied, self._state.last,
            )  # fmt: skip

    def submit(self, operation: Operation) -> Future[Any]:
        self._check_whole()
        check_record(operation, self.settings.entry_bytes_max)
        return self._publisher.submit(operation)

    def _check_whole(self) -> None:
        broken = self._applier.broken
        if broken is not None:
            raise type(broken)(broken.message, code=broken.code) from broken

    def _is_purged(self, place: Lsn) -> bool:
        """Whether the message at a place, which did not come, is in the state written down."""
        made = self._keeper.newest()
        return made is not None and made.lsn >= place

    @property
    def about(self) -> str:
        return promise(self._connection, self._state)

    def _applied(self, news: News, outcomes: list[Outcome]) -> None:
        self.operations += len(outcomes)
        self._tell(news)
        self._publisher.settle(outcomes)
        for outcome in outcomes:
            if isinstance(outcome.answer, Trimmed) and self._publisher.is_mine(outcome.id):
                gone = outcome.answer
                self._trimmed_bytes += gone.payload_bytes + ENTRY_BYTES * gone.entries
                self._keep()

    def _keep(self) -> None:
        """Purge in the stream what was trimmed here, once it is worth it."""
        if self._keeping is not None and self._keeping.is_alive():
            return
        if self._trimmed_bytes >= self.settings.purge_bytes_min:
            self._trimmed_bytes = 0
            if self._connection.numbers < PURGE_VERSION:
                _LOG.warning(
                    "what is trimmed from the log %s stays in its stream: replicas of nats-server "
                    "%s come to differ when one is killed around a purge; upgrade to %s or newer",
                    self._connection.address, self._connection.version,
                    ".".join(map(str, PURGE_VERSION)),
                )  # fmt: skip
                return
            self._keeping = threading.Thread(target=self._purge, name="penstock-keeper")
            self._keeping.start()

    def purge(self, wait_s: float) -> int:
        """Write the state down, and purge what that replaces after a while; how many messages.

        Before `PURGE_VERSION` only while no server of JetStream can go down.
        """
        return self._keeper.write_down(self.reading, wait_s)

    def _purge(self) -> None:
        try:
            self.purge(self.settings.purge_wait_s)
        except Exception as error:
            _LOG.warning(
                "the messages trimmed from the log %s are not purged yet: %s; this is tried again "
                "after the next trim", self._connection.address, error,
            )  # fmt: skip

    async def _watch(self) -> None:
        """Say so when the log has stood still for a while, and clear up after servers that died
        between two messages of an operation."""
        loop = asyncio.get_running_loop()
        moved_at, said_at, seen = loop.time(), 0.0, self._applier.applied
        half = HalfPublished()
        while True:
            with going_on("saying which version the log is of"):
                await self._announce_version()
            await asyncio.sleep(WATCH_S)
            now = loop.time()
            idle = self._publisher.bounds.count == 0 and self._follower.trouble is None
            if idle or self._applier.applied != seen:
                moved_at, seen = now, self._applier.applied
            elif now - moved_at > QUIET_S and now - said_at > SAY_AGAIN_S:
                said_at = now
                with going_on("saying that the log stands still"):
                    await self._say_trouble(now - moved_at)
            with going_on("clearing up after servers that died"):
                with self.reading() as view:
                    open_now = open_operation(view)
                opened = half.due(open_now, self._applier.applied, now, OPEN_S_MAX)
                if opened is not None:
                    half.published(await self._void(opened))

    async def _say_trouble(self, seconds: float) -> None:
        why = self._publisher.refusal or self._follower.trouble or "no message comes"
        _LOG.warning(
            "the log %s has stood still for %.0f s: %s; its servers are %s; %d operations wait and "
            "none is lost; start the servers that are down, so that more than half of %d replicas "
            "run",
            self._connection.address, seconds, why, await self._connection.reach(),
            self._publisher.bounds.count, self._state.replicas,
        )  # fmt: skip

    async def _announce_version(self) -> None:
        """Make a log with messages of an older version one of this version, before anything is
        decided here that servers of the older one would decide otherwise: they stop at the
        message, and say why."""
        with self.reading() as view:
            is_older = view.next_lsn > 1 and log_version(view) < VERSION
        if is_older and self._applier.applied >= max(self._state.last, self._announced):
            self._announced = await self._void(self._publisher.nothing)

    async def _void(self, opened: OperationId) -> Lsn:
        """Take the operation back; the place of the message that does."""
        message = void_message(opened)
        subject = f"{self._connection.address.name}.{message.subject}"
        answer = await self._connection.client.request(subject, message.body, timeout=REQUEST_S)
        return Lsn(msgspec.json.decode(answer.data)["seq"])

    @property
    def commits(self) -> int:
        """Transactions on the index so far."""
        return self._applier.commits

    def close(self) -> None:
        """Wait for what is under way, within `stop_s_max`; what is left may still take place."""
        if not self._publisher.bounds.close(self.settings.stop_s_max):
            _LOG.warning(
                "%d operations are unanswered at the end; whether they take place is seen in the "
                "log later", self._publisher.bounds.count,
            )  # fmt: skip
        self._keeper.stop()
        if self._keeping is not None:
            self._keeping.join()
        for task in self._tasks:
            task.cancel()
        # What is applied may ask JetStream and answer callers on the connection's loop.
        self._applier.close()
        self._connection.close()
        self._publisher.abandon()
        self._env.sync(True)
        self._env.close()
        self.folder.write_index(named(self._connection.address, self._state, running=False))
        self.folder.close()


def _bounded(settings: Settings, connection: Connection, state: StreamState) -> Settings:
    """The settings as they hold for this log: entries fit into messages, and what decisions rest
    on is what the log was made with."""
    agreed = {name: getattr(state.agreed, name) for name in AGREED}
    for name, value in agreed.items():
        if value != getattr(settings, name):
            _LOG.warning(
                "the log %s was made with %s=%d, which counts on all its servers; %d is not used",
                connection.address, name, value, getattr(settings, name),
            )  # fmt: skip
    room = max(KIB, connection.payload_max - META_BYTES)
    return dataclasses.replace(
        settings, **agreed, entry_bytes_max=min(settings.entry_bytes_max, room)
    )
