"""One thread that applies what the stream brings: many messages in one transaction, unsynced.

The store is an index of the stream and may be made anew from it, so nothing waits for its disk.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import lmdb

from penstock.clock import Clock
from penstock.errors import Damaged, PenstockError, TryAgain
from penstock.log.backends.jetstream.codec import Newer
from penstock.log.backends.jetstream.replay import Delivered, Outcome, Replay
from penstock.log.backends.jetstream.state_dump import Refill
from penstock.log.backends.keep_running import going_on
from penstock.log.backends.outcomes import News, is_local
from penstock.log.rules import Rules
from penstock.log.store.layout import Tables
from penstock.model.ids import Lsn
from penstock.settings.server import Settings

MESSAGES_MAX = 1_024
RETRY_S = 1.0
_LOG = logging.getLogger("penstock.log")

T = TypeVar("T")
OnApplied = Callable[[News, list[Outcome]], None]
Item = Delivered | Callable[[], None]


class Applier:
    """The queue of messages and its thread. A callable in the queue is called in its turn."""

    def __init__(
        self,
        env: lmdb.Environment,
        tables: Tables,
        settings: Settings,
        clock: Clock,
        applied: Lsn,
        on_applied: OnApplied,
        is_purged: Callable[[Lsn], bool],
        refill: Refill | None = None,
    ) -> None:
        """`is_purged` says whether a state is written down that holds the message at a place."""
        self._env = env
        self._tables = tables
        self._settings = settings
        self._rules = Rules.of(settings)
        self._clock = clock
        self._on_applied = on_applied
        self._is_purged = is_purged
        self._refill = refill
        self._queue: deque[Item] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self.applied = applied
        self.commits = 0
        self.broken: PenstockError | None = None
        """Why nothing is applied any more, once that is so."""
        self._thread = threading.Thread(target=self._run, name="penstock-applier", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, item: Item) -> None:
        """From the loop; the queue is bounded by the consumer's flow control."""
        with self._wake:
            self._queue.append(item)
            self._wake.notify()

    def wait_until(self, lsn: int, seconds_max: float) -> bool:
        """Whether everything up to the place was applied in time."""
        until = self._clock.monotonic_s() + seconds_max
        while self.applied < lsn:
            if self._clock.monotonic_s() > until:
                return False
            self._clock.sleep(0.002)
        return True

    def close(self) -> None:
        """End after the transaction under way; what is queued comes again after a restart."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def stop_at(self, sentence: str) -> None:
        """Apply nothing more: the stream, or what is stored of it, is not what it was."""
        self._stop_at(Damaged(sentence, code="damaged"))

    def _cannot_go_on(self, sentence: str) -> None:
        """Apply nothing more until the server is started again."""
        self._stop_at(TryAgain(sentence, code="log_unavailable"))

    def _stop_at(self, error: PenstockError) -> None:
        _LOG.error("the log is followed no further: %s", error.message)
        self.broken = error

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._stopping:
                    self._wake.wait()
                if self._stopping:
                    return
                group, after = self._take()
            if group and self._refill is not None:
                group = self._surely(self._fill, group) or []
            applied = self._surely(self._apply, group) if group else None
            if applied is not None:
                self.applied = group[-1].lsn
                self.commits += 1
                with going_on("telling of what was applied"):
                    self._on_applied(*applied)
            if after is not None:
                with going_on("asking for more messages"):
                    after()

    def _take(self) -> tuple[list[Delivered], Callable[[], None] | None]:
        group: list[Delivered] = []
        size = 0
        while self._queue and len(group) < MESSAGES_MAX and size < self._settings.group_bytes_max:
            item = self._queue.popleft()
            if not isinstance(item, Delivered):
                return group, item
            group.append(item)
            size += len(item.body)
        return group, None

    def _surely(self, work: Callable[[list[Delivered]], T], group: list[Delivered]) -> T | None:
        """Until it is done: a store that cannot be written to, full perhaps, is tried again until
        it can, and so is a JetStream that does not answer. None: it was not done, because this is
        broken or ends."""
        while not self._stopping and self.broken is None:
            try:
                return work(group)
            except Newer as error:
                self._cannot_go_on(
                    f"a message after {self.applied} is of a newer version: {error}; start the "
                    "server again, in the newest version that is used with this log"
                )
            except Damaged as error:
                self.stop_at(
                    f"the index of the log is damaged: {error.message}; or delete its folder, "
                    "which is made anew from the stream"
                )
            except Exception as error:
                _LOG.error(
                    "the messages from %d on cannot be applied to the index of the log: %s: %s; "
                    "make room if its disk is full; trying again every %g s",
                    group[0].lsn, type(error).__name__, error, RETRY_S,
                )  # fmt: skip
                with self._wake:
                    self._wake.wait_for(lambda: self._stopping, RETRY_S)
        return None

    def _fill(self, group: list[Delivered]) -> list[Delivered]:
        """Fill payloads in up to the state that was loaded; what comes after it is left."""
        refill = self._refill
        if refill is None:
            return group
        left = refill.left
        txn = self._env.begin(write=True, buffers=True)
        try:
            for message in group:
                if message.lsn <= refill.until:
                    refill.fill(txn, self._tables, message)
            txn.commit()
        except BaseException:
            refill.left = left
            raise
        finally:
            txn.abort()
        after = [message for message in group if message.lsn > refill.until]
        if refill.left == 0:
            self._refill = None
            self.applied = max(self.applied, refill.until)
        elif after:
            self.stop_at(
                f"the stream lacks {refill.left} messages of entries that are there; restore "
                "JetStream from a backup"
            )
        return after

    def _check_places(self, group: list[Delivered]) -> bool:
        """Places have no gap: what was purged must have been applied by then."""
        places = [self.applied, *(message.lsn for message in group)]
        for before, place in pairwise(places):
            if place == before + 1:
                continue
            if self._is_purged(Lsn(place - 1)):
                self._cannot_go_on(
                    f"the messages after {before} were purged before they were applied; start the "
                    "server again, to go on from the state that was written down"
                )
            else:
                self.stop_at(
                    f"the stream lacks the messages {before + 1} to {place - 1}, which no state "
                    "written down holds: JetStream has lost what it had acknowledged; restore it "
                    "from a backup"
                )
            return False
        return True

    def _apply(self, group: list[Delivered]) -> tuple[News, list[Outcome]] | None:
        """As one; if that fails by more than this machine, each message apart from the others, so
        that the one that cannot be applied anywhere is passed over, as it is on every server."""
        if not self._check_places(group):
            return None
        try:
            return self._transact(group, self._replay)
        except Exception as error:
            if is_local(error) or isinstance(error, Newer):
                raise
        return self._transact(group, self._replay_apart)

    def _transact(
        self, group: list[Delivered], replay: Callable[..., list[Outcome]]
    ) -> tuple[News, list[Outcome]]:
        news = News()
        txn = self._env.begin(write=True, buffers=True)
        try:
            outcomes = replay(txn, group, news)
            txn.commit()
        finally:
            txn.abort()
        return news, outcomes

    def _replay(self, txn: lmdb.Transaction, group: list[Delivered], news: News) -> list[Outcome]:
        replay = Replay(txn, self._tables, self._rules, news)
        return [outcome for each in group if (outcome := replay.apply(each)) is not None]

    def _replay_apart(
        self, txn: lmdb.Transaction, group: list[Delivered], news: News
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for message in group:
            within = self._env.begin(write=True, buffers=True, parent=txn)
            try:
                outcomes += self._replay(within, [message], news)
                within.commit()
            except Exception as error:
                within.abort()
                if is_local(error) or isinstance(error, Newer):
                    raise
                refused = Replay(txn, self._tables, self._rules, news).refuse(message, error)
                outcomes += [] if refused is None else [refused]
        return outcomes
