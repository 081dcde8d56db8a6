"""Outcomes of operations, for every backend: plan or refusal, the answer, and the news."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import lmdb

from penstock.errors import Bug, Damaged, PenstockError
from penstock.log.decide import decide
from penstock.log.operations import Operation
from penstock.log.plan import Plan
from penstock.log.store.apply import Effects
from penstock.log.store.view import StoreView
from penstock.model.ids import BEFORE_ALL, QueryId, StreamName

_LOG = logging.getLogger("penstock.log")

OnVisible = Callable[[frozenset[StreamName]], None]
OnMarked = Callable[[QueryId, bytes], None]
"""Called with the query and the payload of a marker that is durable."""


class News:
    """The changes of a transaction, for those who wait for it."""

    def __init__(self) -> None:
        self.changed = False
        self.last = BEFORE_ALL
        """The last place that the transaction has filled."""
        self.streams: set[StreamName] = set()
        self.tags: set[str] = set()
        self.settles_any = False
        """A place has settled whose entry may have had any tag."""
        self.markers: list[tuple[QueryId, bytes]] = []

    def take(self, other: News) -> None:
        """Take in what a part of the transaction has changed."""
        self.changed = self.changed or other.changed
        self.last = max(self.last, other.last)
        self.streams |= other.streams
        self.tags |= other.tags
        self.settles_any = self.settles_any or other.settles_any
        self.markers += other.markers

    def settle(self, tag: str | None) -> None:
        """A wait at a place has come to its end, an entry or none: who reads entries with the
        tag, or with any if it is not known, may read past the place."""
        if tag is None:
            self.settles_any = True
        else:
            self.tags.add(tag)

    def add(self, plan: Plan) -> None:
        self.changed = True
        self.streams.update(name for name, _ in plan.showings)
        for entry in plan.entries:
            self.tags.update(entry.head.tags)
            self.last = max(self.last, entry.head.lsn)
        if plan.mark is not None:
            self.markers.append((plan.mark[0], bytes(plan.entries[0].payload)))


def unanswered() -> Future[Any]:
    """For the answer to an operation. It cannot be cancelled: what is submitted takes place whether
    its caller waits or has gone, and who answers many callers must be able to answer each."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


class Given(NamedTuple):
    """The answer to what may be answered early; `start`: it was, by this start of the log."""

    answer: Any
    start: int | None


def as_given(durable: Future[Any]) -> Future[Given]:
    """The answer to an operation that is answered when it is durable, in the form of those that may
    be answered early."""
    given: Future[Given] = unanswered()

    def answered(done: Future[Any]) -> None:
        refusal = done.exception()
        if refusal is not None:
            given.set_exception(refusal)
        else:
            given.set_result(Given(done.result(), None))

    durable.add_done_callback(answered)
    return given


def decided(operation: Operation, view: StoreView) -> Plan | PenstockError:
    """The plan or the refusal; a fault of ours in deciding is the operation's own, too."""
    try:
        return decide(operation, view)
    except PenstockError as refusal:
        return refusal
    except Exception as error:
        if is_local(error):
            raise
        return failed("deciding", operation, error)


def carry_out(operation: Operation, view: StoreView, news: News) -> Any:
    """Decide on the operation and apply its plan: the answer or the refusal."""
    plan = decided(operation, view)
    if isinstance(plan, PenstockError):
        return plan
    if plan.changes:
        Effects(view).apply(plan)
        news.add(plan)
    return plan.answer


def is_local(error: Exception) -> bool:
    """Whether the failure is of this machine, and not of the operation on every machine: the disk
    or the map is full, or memory is short, or what the disk holds is not what was written."""
    if isinstance(error, lmdb.BadValsizeError | lmdb.KeyExistsError):
        return False
    return isinstance(error, lmdb.Error | OSError | MemoryError | Damaged)


def failed(act: str, subject: object, error: Exception) -> Bug:
    """The refusal of an operation by a fault of ours, said in the log with its trace."""
    _LOG.error("%s %s failed", act, type(subject).__name__, exc_info=error)
    return Bug(f"{act} failed: {type(error).__name__}: {error}; report this", code="bug")
