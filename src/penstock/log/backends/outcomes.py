"""Outcomes of operations, for every backend: plan or refusal, the answer, and the news."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

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
    """What a transaction has changed, for those who wait for it."""

    def __init__(self) -> None:
        self.changed = False
        self.last = BEFORE_ALL
        """The last place that the transaction has filled."""
        self.streams: set[StreamName] = set()
        self.tags: set[str] = set()
        self.markers: list[tuple[QueryId, bytes]] = []

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
