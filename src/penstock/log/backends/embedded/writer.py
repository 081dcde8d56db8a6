"""One thread that writes: what has queued up shares one transaction and one sync.

The order of each round, and why:

1. take what is queued, up to the bounds of a group, so that callers share the cost of a sync;
2. decide each operation in turn against the state its predecessors in the group left, and apply
   its plan; a refused operation has no plan and so leaves no trace;
3. commit, which syncs; nobody is answered before that, not even a refusal, because it may rest on
   what a predecessor in the group wrote;
4. say which streams show something new, then answer everyone.

If applying a plan fails, the group is decided again with each operation in a transaction of its
own within the group's: the one that cannot be carried out is refused, and its neighbours are not.
If the commit fails, nothing of the group took place; where there is no room left, what frees space
is carried out with the reserve, and every other operation is told so.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lmdb

from penstock.clock import Clock
from penstock.errors import Bug, PenstockError, TryAgain
from penstock.log.backends.outcomes import News, carry_out, failed, is_local, unanswered
from penstock.log.operations import Operation, payload_bytes
from penstock.log.rules import Rules
from penstock.log.store.layout import SteadyTime, Tables
from penstock.log.store.room import Room, is_freeing
from penstock.log.store.view import StoreView
from penstock.settings.server import Settings

_LOG = logging.getLogger("penstock.log")
_FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}

OnNews = Callable[[News], None]
Refusals = Sequence[PenstockError | None]
CarryOut = Callable[[lmdb.Transaction, Operation, News], Any]


@dataclass(frozen=True)
class Waiting:
    """An operation in the queue."""

    operation: Operation
    size: int
    future: Future[Any]


class Writer:
    """The queue and its thread. `commits` and `operations` count what was made durable."""

    def __init__(
        self,
        env: lmdb.Environment,
        tables: Tables,
        folder: Path,
        settings: Settings,
        clock: Clock,
        on_news: OnNews,
    ) -> None:
        self._env = env
        self._tables = tables
        self._room = Room(env, tables, folder, settings)
        self._settings = settings
        self._rules = Rules.of(settings)
        self._clock = clock
        self._steady: tuple[SteadyTime, float] | None = None
        self._on_news = on_news
        self._queue: deque[Waiting] = deque()
        self._queue_bytes = 0
        self._wake = threading.Condition()
        self._stopping = False
        self.commits = 0
        self.operations = 0
        self._thread = threading.Thread(target=self._run, name="penstock-writer", daemon=True)
        self._thread.start()

    def submit(self, operations: Sequence[Operation]) -> list[Future[Any]]:
        """Queue operations, side by side; at the queue's bound they are refused with `busy`, not
        delayed."""
        queued = [Waiting(each, payload_bytes(each), unanswered()) for each in operations]
        size = sum(waiting.size for waiting in queued)
        with self._wake:
            if self._stopping:
                raise TryAgain("the server is stopping; try again when it is back", code="stopping")
            full = self._queue_bytes + size > self._settings.queue_bytes_max
            if len(self._queue) >= self._settings.queue_max or (full and self._queue):
                raise TryAgain(
                    f"{len(self._queue)} operations with {self._queue_bytes} bytes wait to be "
                    "written, which is the bound; try again, or send fewer and larger requests",
                    code="busy",
                )
            self._queue.extend(queued)
            self._queue_bytes += size
            self._wake.notify()
        return [waiting.future for waiting in queued]

    def close(self) -> None:
        """Write what is queued, then end the thread. What is submitted from here on is refused."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            group = self._take()
            if not group:
                return
            self._write(group)

    def _take(self) -> list[Waiting]:
        """The next group; empty once stopped and drained."""
        group: list[Waiting] = []
        size = 0
        with self._wake:
            while not self._queue and not self._stopping:
                self._wake.wait()
            while self._queue and len(group) < self._settings.group_max:
                waiting = self._queue.popleft()
                group.append(waiting)
                size += waiting.size
                self._queue_bytes -= waiting.size
                if size >= self._settings.group_bytes_max:
                    break
        return group

    def _write(self, group: list[Waiting]) -> None:
        try:
            outcomes, news = self._transacted(group, self._refusals(group))
        except Exception as error:
            outcomes, news = self._freed(group, self._failure(error))
        if news.changed:
            self.commits += 1
            self.operations += len(group)
            self._on_news(news)
        for waiting, outcome in zip(group, outcomes, strict=True):
            if isinstance(outcome, Exception):
                waiting.future.set_exception(outcome)
            else:
                waiting.future.set_result(outcome)

    def _refusals(self, group: list[Waiting]) -> Refusals:
        """Why what makes the log grow must wait, for each operation; None: there is room for it."""
        sizes = [None if is_freeing(each.operation) else each.size for each in group]
        with self._env.begin() as txn:
            return self._room.refusals(txn, sizes)

    def _freed(self, group: list[Waiting], refusal: PenstockError) -> tuple[list[Any], News]:
        """After a failure, what frees space once more, with the reserve; the rest is refused."""
        refusals = [None if is_freeing(each.operation) else refusal for each in group]
        if refusal.code == "storage_full" and None in refusals:
            self._room.release()
            try:
                freed = self._transacted(group, refusals)
                self._settle_freed_pages()
                return freed
            except Exception as error:
                refusal = self._failure(error)
        return [refusal] * len(group), News()

    def _settle_freed_pages(self) -> None:
        """Commit once more, next to nothing: pages that one transaction has freed can be used from
        the second one after it on."""
        with suppress(lmdb.Error), self._env.begin(write=True, buffers=True) as txn:
            self._take_time(txn)

    def _transacted(self, group: list[Waiting], refusals: Refusals) -> tuple[list[Any], News]:
        try:
            return self._transact(group, refusals, self._carry_out)
        except Exception as error:
            if is_local(error):
                raise
            return self._transact(group, refusals, self._carry_out_apart)

    def _transact(
        self, group: list[Waiting], refusals: Refusals, carry_out: CarryOut
    ) -> tuple[list[Any], News]:
        news = News()
        txn = self._env.begin(write=True, buffers=True)
        try:
            self._take_time(txn)
            outcomes = [
                carry_out(txn, waiting.operation, news) if refusal is None else refusal
                for waiting, refusal in zip(group, refusals, strict=True)
            ]
            if news.changed:
                txn.commit()
        finally:
            txn.abort()
        return outcomes, news

    def _take_time(self, txn: lmdb.Transaction) -> None:
        """Move the log's steady time on by what has passed here since it was last moved, whether
        that was kept or not; over a restart, by what the wall clock says, within bounds."""
        view = StoreView(txn, self._tables)
        now_s, wall_ms = self._clock.monotonic_s(), self._clock.wall_ms()
        if self._steady is None:
            steady = view.steady.moved_to(wall_ms, self._rules.step_ms_max)
        else:
            before, at_s = self._steady
            passed_ms = int((now_s - at_s) * 1000)
            steady = before.moved_on(passed_ms, wall_ms)
            now_s = at_s + passed_ms / 1000  # what is left of a millisecond counts the next time
        self._steady = (steady, now_s)
        view.put_steady(steady)

    def _carry_out(self, txn: lmdb.Transaction, operation: Operation, news: News) -> Any:
        view = StoreView(txn, self._tables, self._clock.wall_ms(), rules=self._rules)
        return carry_out(operation, view, news)

    def _carry_out_apart(self, txn: lmdb.Transaction, operation: Operation, news: News) -> Any:
        within = self._env.begin(write=True, buffers=True, parent=txn)
        try:
            outcome = self._carry_out(within, operation, news)
            within.commit()
        except Exception as error:
            within.abort()
            if is_local(error):
                raise
            return failed("applying", operation, error)
        return outcome

    def _failure(self, error: Exception) -> PenstockError:
        """Why a group was not written, in a sentence for its callers."""
        if isinstance(error, lmdb.MapFullError):
            return self._room.full(
                f"the log has reached map_bytes, {self._settings.map_bytes}; raise it, or trim it,"
            )
        if isinstance(error, lmdb.DiskError | OSError) or _number_of(error) in _FULL:
            return self._room.full(f"{error}; make room")
        _LOG.error("a group of operations failed", exc_info=error)
        return Bug(f"writing failed: {type(error).__name__}: {error}; report this", code="bug")


def _number_of(error: Exception) -> int | None:
    """The errno an LMDB error carries in its text, which is the only place it has it."""
    for number in _FULL:
        if os.strerror(number) in str(error):
            return number
    return None
