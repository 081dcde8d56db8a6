"""One server's copy of the log in a simulated world: the real decisions over the real store.

A world never commits to disk. A copy is a transaction inside another one: what is synced goes to
the outer one, a crash drops the inner one, and the end of the world drops both.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import lmdb

from penstock.errors import PenstockError
from penstock.log.backends.jetstream.codec import OperationId
from penstock.log.backends.jetstream.replay import Delivered, Replay, Void
from penstock.log.backends.outcomes import News, decided
from penstock.log.operations import Operation
from penstock.log.plan import Plan
from penstock.log.rules import Rules
from penstock.log.store.apply import Effects
from penstock.log.store.layout import TABLES, Tables
from penstock.log.store.view import StoreView
from penstock.log.view import Place
from penstock.model.ids import Lsn
from simulation.log.setup import LogSetup


class Applied(NamedTuple):
    """What became of an operation: the answer or the refusal, and the plan carried out, if any."""

    answer: Any
    plan: Plan | None = None
    start: int | None = None  # it was answered before it was synced, by this start

    @property
    def refusal(self) -> PenstockError | None:
        return self.answer if isinstance(self.answer, PenstockError) else None

    @property
    def is_void(self) -> bool:
        return isinstance(self.answer, Void)


class Unsynced(NamedTuple):
    """What a server has answered and not synced, so that nobody else sees it."""

    operation: Operation
    wall_ms: int
    start: int


class Noted(News):
    """Keeps the last plan that was carried out."""

    def __init__(self) -> None:
        super().__init__()
        self.plan: Plan | None = None

    def add(self, plan: Plan) -> None:
        super().add(plan)
        self.plan = plan


@dataclass(frozen=True)
class _Files:
    folder: tempfile.TemporaryDirectory[str]
    env: lmdb.Environment
    tables: Tables


@cache
def _files(slot: int) -> _Files:
    """One store for the copies of all worlds with this number: opening one takes longer than a
    world lasts, and no world leaves anything in it."""
    folder = tempfile.TemporaryDirectory(prefix="penstock-simulated-")
    env = lmdb.open(folder.name, map_size=64 << 20, max_dbs=len(TABLES), sync=False)
    return _Files(folder, env, Tables(env))


class Unfiltered(StoreView):
    """A log that does not know the sequences of records: its readers tell repeats by themselves."""

    def recorded(self, producer: str, seq: int) -> Lsn | None:
        return None

    def last_recorded(self, producer: str) -> int | None:
        return None


class Replica:
    """A copy of the log, brought up message by message, or, alone, operation by operation."""

    def __init__(self, slot: int, setup: LogSetup) -> None:
        self._files = _files(slot)
        self.rules = Rules(producers_max=setup.producers_max, producer_kept_ms_min=0)
        self.setup = setup
        self._base = self._files.env.begin(write=True, buffers=True)
        self.txn = self._begin()
        self.followed = self._synced = 0
        self._unsynced: list[Unsynced] = []

    @property
    def tables(self) -> Tables:
        return self._files.tables

    def _begin(self) -> lmdb.Transaction:
        return self._files.env.begin(parent=self._base, write=True, buffers=True)

    def close(self) -> None:
        self.txn.abort()
        self._base.abort()

    def sync(self) -> None:
        self.land()
        self.txn.commit()
        self.txn = self._begin()
        self._synced = self.followed

    def crash(self) -> None:
        """Back to what was synced."""
        self._unsynced.clear()
        self.txn.abort()
        self.txn = self._begin()
        self.followed = self._synced

    def empty(self) -> None:
        """Lose everything, what was synced too."""
        self.txn.abort()
        self._base.abort()
        self._base = self._files.env.begin(write=True, buffers=True)
        self.txn = self._begin()
        self.followed = self._synced = 0

    def rows(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Every row of every table."""
        for name in TABLES:
            with self.txn.cursor(db=self.tables[name]) as cursor:
                for key, value in cursor:
                    yield name, bytes(key), bytes(value)

    def view(self) -> StoreView:
        return StoreView(self.txn, self.tables)

    def look(
        self, operation: Operation, wall_ms: int, places: tuple[Place, ...] | None = None
    ) -> StoreView:
        """What the decision on the operation sees."""
        kind = StoreView if self.setup.filters_records else Unfiltered
        return kind(self.txn, self.tables, wall_ms, places, self.rules)

    def decide(self, operation: Operation, view: StoreView) -> Plan | PenstockError:
        return decided(operation, view)

    def apply(
        self, operation: Operation, wall_ms: int, places: tuple[Place, ...] | None = None
    ) -> Applied:
        """Decide on the operation as the log is now, and carry the plan out."""
        view = self.look(operation, wall_ms, places)
        plan = self.decide(operation, view)
        if isinstance(plan, PenstockError):
            return Applied(plan)
        if plan.changes:
            Effects(view).apply(plan)
        return Applied(plan.answer, plan)

    @property
    def has_unsynced(self) -> bool:
        return bool(self._unsynced)

    def apply_early(self, operation: Operation, wall_ms: int, start: int) -> Applied:
        """What is answered before the sync: applied after all that was answered so, where nobody
        looks. A refusal is not told before what it may rest on is durable: it leaves nothing."""
        self._unsynced.append(Unsynced(operation, wall_ms, start))
        outer, self.txn = self.txn, self._files.env.begin(parent=self.txn, write=True, buffers=True)
        try:
            applied = self._apply_unsynced()[-1]
        finally:
            self.txn.abort()
            self.txn = outer
        if applied.refusal is not None:
            self._unsynced.pop()
        return applied._replace(start=start)

    def _apply_unsynced(self) -> list[Applied]:
        outcomes = []
        for operation, wall_ms, start in self._unsynced:
            outcomes.append(self.apply(operation, wall_ms))
            self.view().put_given(start)
        return outcomes

    def land(self) -> None:
        """What was answered early is there for everybody, and synced with what comes next."""
        self._apply_unsynced()
        self._unsynced.clear()

    def keep_given(self, start: int) -> None:
        """All that the start gave is there, if it gave anything before a sync."""
        view = self.view()
        if view.given_below(start):
            view.put_given(start)

    def follow(self, message: Delivered) -> tuple[OperationId, Applied] | None:
        """Apply the next message; the operation that is complete with it, and its outcome."""
        own = (type(self).look, type(self).decide) != (Replica.look, Replica.decide)
        kind = partial(Looking, self) if own or not self.setup.filters_records else Replay
        replay = kind(self.txn, self.tables, self.rules)
        noted = Noted()
        replay.news = noted
        outcome = replay.apply(message)
        self.followed += 1
        return None if outcome is None else (outcome.id, Applied(outcome.answer, noted.plan))


class Looking(Replay):
    """Decides as its replica sees things."""

    def __init__(self, replica: Replica, *store: Any) -> None:
        super().__init__(*store)
        self._replica = replica

    def _decide(self, operation: Operation, places: tuple[Place, ...]) -> Any:
        applied = self._replica.apply(operation, places[-1].at_ms, places)
        if applied.plan is not None and applied.plan.changes:
            self.news.add(applied.plan)
        return applied.answer
