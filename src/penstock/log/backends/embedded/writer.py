"""One thread that writes: what has queued up shares one transaction and one sync.

The order of each round, and why:

1. take what is queued, up to the bounds of a group, so that callers share the cost of a sync;
2. decide each operation in turn against the state its predecessors in the group left, and apply
   its plan; a refused operation has no plan and so leaves no trace;
3. commit, which syncs; nobody is answered before that, not even a refusal, because it may rest on
   what a predecessor in the group wrote;
4. say which streams show something new, then answer everyone.

Appends that wait for a marker may be answered early (PROTOCOL.md, section 3): where a group has
nothing else, it is applied within a transaction that stays open, and answered with the number of
this start. Whatever comes next is carried out within that transaction, whose one commit then syncs
both; at the latest it is committed after `unsynced_ms_max`. A group in which something is refused
is not answered early, and one that fails takes nothing with it that was answered.

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
from functools import partial
from pathlib import Path
from typing import Any

import lmdb

from penstock.clock import Clock
from penstock.errors import Bug, PenstockError, TryAgain
from penstock.log.backends.embedded.early_answers import EarlyAnswers
from penstock.log.backends.outcomes import (
    Given,
    News,
    as_given,
    carry_out,
    failed,
    is_local,
    unanswered,
)
from penstock.log.decide.starts import may_be_early
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
    """An operation in the queue; `is_early`: it may be answered before it is synced."""

    operation: Operation
    size: int
    future: Future[Any]
    is_early: bool

    def answer(self, outcome: Any, start: int | None = None) -> None:
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(Given(outcome, start) if self.is_early else outcome)


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
        self._early = EarlyAnswers(env, tables, settings, clock)
        self.commits = 0
        self.operations = 0
        self._thread = threading.Thread(target=self._run, name="penstock-writer", daemon=True)
        self._thread.start()

    def submit(self, operations: Sequence[Operation]) -> list[Future[Any]]:
        """Queue operations, side by side; at the queue's bound they are refused with `busy`, not
        delayed."""
        return self._submit(operations, is_early=False)

    def submit_early(self, operations: Sequence[Operation]) -> list[Future[Given]]:
        """Queue operations, side by side, to be answered once they are applied, if all of them may
        be and the settings allow it."""
        if self._settings.unsynced_ms_max and all(map(may_be_early, operations)):
            return self._submit(operations, is_early=True)
        return [as_given(each) for each in self.submit(operations)]

    def _submit(self, operations: Sequence[Operation], *, is_early: bool) -> list[Future[Any]]:
        queued = [Waiting(each, payload_bytes(each), unanswered(), is_early) for each in operations]
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
            if group:
                if not self._answered_early(group):
                    self._write(group)
            elif self._early.txn is not None:
                self._sync_answered()
            else:
                return

    def _take(self) -> list[Waiting]:
        """The next group; empty once stopped and drained, or when what was answered early has to be
        synced before anything comes."""
        group: list[Waiting] = []
        size = 0
        with self._wake:
            while not self._queue and not self._stopping:
                left_s = self._early.left_s()
                if left_s is not None and left_s <= 0:
                    return []
                self._wake.wait(left_s)
            while self._queue and len(group) < self._settings.group_max:
                waiting = self._queue.popleft()
                group.append(waiting)
                size += waiting.size
                self._queue_bytes -= waiting.size
                if size >= self._settings.group_bytes_max:
                    break
        return group

    def _answered_early(self, group: list[Waiting]) -> bool:
        """Carry the group out and answer it before its sync; False where nothing of that was done,
        and the group is to be written as any other."""
        sizes = [waiting.size for waiting in group]
        is_early = all(waiting.is_early for waiting in group)
        if not is_early or not self._early.have_room_for(sizes):
            return False
        try:
            refusals = self._refusals(group)
            carry_out = partial(self._outcomes, group, refusals, self._carry_out)
            answers = self._early.applied(carry_out, sizes)
        except Exception as error:
            _LOG.info("a group is written before it is answered, because of %r", error)
            return False
        if answers is None:
            return False
        for waiting, answer in zip(group, answers, strict=True):
            waiting.answer(answer, self._early.start)
        return True

    def _sync_answered(self) -> None:
        """Commit what was answered early, within which nothing else is carried out."""
        with suppress(Exception):  # that it is lost is said where it is
            self._commit_answered()

    def _commit_answered(self) -> None:
        synced = self._early.commit()
        if synced is not None:
            self.commits += 1
            self.operations += len(synced.sizes)
            self._on_news(synced.news)

    def _write(self, group: list[Waiting]) -> None:
        try:
            outcomes, news = self._transacted(group, self._refusals(group))
        except Exception as error:
            refusal = self._failure(error)
            self._sync_answered()  # what was answered is not to be lost with this group
            outcomes, news = self._freed(group, refusal)
        if news.changed:
            self.operations += len(group)
            self._on_news(news)
        for waiting, outcome in zip(group, outcomes, strict=True):
            waiting.answer(outcome)

    def _refusals(self, group: list[Waiting]) -> Refusals:
        """Why what makes the log grow must wait, for each operation; None: there is room for it."""
        sizes = [None if is_freeing(each.operation) else each.size for each in group]
        unsynced = self._early.sizes
        with self._env.begin() as txn:
            return self._room.refusals(txn, [*unsynced, *sizes])[len(unsynced) :]

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
            done = self._transact(group, refusals, self._carry_out)
        except Exception as error:
            if is_local(error):
                raise
            done = self._transact(group, refusals, self._carry_out_apart)
        # Not within the try: whatever fails here, the group is carried out and must not be again.
        self._commit_answered()
        return done

    def _transact(
        self, group: list[Waiting], refusals: Refusals, carry_out: CarryOut
    ) -> tuple[list[Any], News]:
        news, outer = News(), self._early.txn
        txn = self._env.begin(write=True, buffers=True, parent=outer)
        try:
            outcomes = self._outcomes(group, refusals, carry_out, txn, news)
            if news.changed:
                self._early.put_given(txn)
                txn.commit()
        finally:
            txn.abort()
        if outer is None and news.changed:
            self.commits += 1
        return outcomes, news

    def _outcomes(
        self,
        group: list[Waiting],
        refusals: Refusals,
        carry_out: CarryOut,
        txn: lmdb.Transaction,
        news: News,
    ) -> list[Any]:
        self._take_time(txn)
        return [
            carry_out(txn, waiting.operation, news) if refusal is None else refusal
            for waiting, refusal in zip(group, refusals, strict=True)
        ]

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
