"""Answers before the sync: the open transaction of what was answered, and this start's number."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import lmdb

from penstock.clock import Clock
from penstock.log.backends.outcomes import News
from penstock.log.store.layout import Tables
from penstock.log.store.view import StoreView
from penstock.settings.server import Settings

_LOG = logging.getLogger("penstock.log")
_START_BITS = 53
"""A start's number is one that JSON readers take, and that no other start of any log has."""

CarryOutGroup = Callable[[lmdb.Transaction, News], list[Any]]


def new_start() -> int:
    return secrets.randbits(_START_BITS)


@dataclass
class Unsynced:
    """Operations that were applied and answered, in a transaction whose commit is their sync.

    `due_s` is when it must be committed, whether anything follows or not. `sizes` are the payloads
    of its operations: no other transaction knows yet what room they take.
    """

    txn: lmdb.Transaction
    due_s: float
    news: News = field(default_factory=News)
    sizes: list[int] = field(default_factory=list)


class EarlyAnswers:
    """Answers that this start of the log gave before their sync. Of the writer's thread alone.

    `start` is another number from when answers were lost: their places are given once more.
    """

    def __init__(
        self, env: lmdb.Environment, tables: Tables, settings: Settings, clock: Clock
    ) -> None:
        self._env = env
        self._tables = tables
        self._settings = settings
        self._clock = clock
        self._unsynced: Unsynced | None = None
        self._has_given = False
        self.start = new_start()

    @property
    def txn(self) -> lmdb.Transaction | None:
        """The open transaction; whatever is to be committed is carried out within it."""
        return None if self._unsynced is None else self._unsynced.txn

    @property
    def sizes(self) -> list[int]:
        return [] if self._unsynced is None else self._unsynced.sizes

    def left_s(self) -> float | None:
        """Seconds until answered operations must be synced; None: all of them are."""
        unsynced = self._unsynced
        return None if unsynced is None else unsynced.due_s - self._clock.monotonic_s()

    def have_room_for(self, sizes: list[int]) -> bool:
        """Whether so much more may be answered before the next sync."""
        left_s = self.left_s()
        is_due = left_s is not None and left_s <= 0
        is_few = len(self.sizes) + len(sizes) <= self._settings.group_max
        is_small = sum(self.sizes) + sum(sizes) <= self._settings.group_bytes_max
        return is_few and is_small and not is_due

    def applied(self, carry_out: CarryOutGroup, sizes: list[int]) -> list[Any] | None:
        """Answers to a group that is carried out within the open transaction; None if one of them
        is a refusal, which may rest on what is not synced. A group that is refused or fails leaves
        no trace, and takes nothing with it that was answered before."""
        opened = self._unsynced or self._opened()
        news = News()
        answers = None
        try:
            answers = self._within(opened.txn, carry_out, news)
        finally:
            if answers is None and self._unsynced is None:
                opened.txn.abort()
        if answers is not None:
            self._unsynced, self._has_given = opened, True
            opened.news.take(news)
            opened.sizes += sizes
        return answers

    def _opened(self) -> Unsynced:
        due_s = self._clock.monotonic_s() + self._settings.unsynced_ms_max / 1000
        return Unsynced(self._env.begin(write=True, buffers=True), due_s)

    def _within(
        self, outer: lmdb.Transaction, carry_out: CarryOutGroup, news: News
    ) -> list[Any] | None:
        txn = self._env.begin(write=True, buffers=True, parent=outer)
        try:
            answers = carry_out(txn, news)
            if any(isinstance(answer, Exception) for answer in answers):
                return None
            StoreView(txn, self._tables).put_given(self.start)
            txn.commit()
        finally:
            txn.abort()
        return answers

    def put_given(self, txn: lmdb.Transaction) -> None:
        """Say in the transaction that all that this start gave is there, if it gave anything early:
        a marker may name what was answered early and what was not as one."""
        if self._has_given:
            StoreView(txn, self._tables).put_given(self.start)

    def commit(self) -> Unsynced | None:
        """Commit the open transaction, which syncs it; what it was, if there was one.

        If that fails, all of it is lost: the queries find out by their markers.
        """
        unsynced, self._unsynced = self._unsynced, None
        if unsynced is None:
            return None
        try:
            unsynced.txn.commit()
        except Exception as error:
            self.start, self._has_given = new_start(), False
            _LOG.error(
                "%d appends that were answered before their sync are lost (%s); the queries whose "
                "batches they were of stop, and go on from their last markers when restarted",
                len(unsynced.sizes), error,
            )  # fmt: skip
            raise
        finally:
            unsynced.txn.abort()
        return unsynced
