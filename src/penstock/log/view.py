"""What a decision may look at, and the plan it makes.

A decision is a function of an operation and a `View`; it reads nothing else, writes nothing, and
either returns a `Plan` or raises the refusal. The store carries plans out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from penstock.log.contract import Appended, Commit, Covered, Entry, Head, QueryRecord, StreamRecord
from penstock.model.ids import BatchId, Instance, Lsn, QueryId, StreamName, Substream


class View(Protocol):
    """One consistent state of the log."""

    @property
    def next_lsn(self) -> Lsn:
        """The place the next entry gets."""
        ...

    @property
    def next_stream_id(self) -> int: ...

    @property
    def now_ms(self) -> int:
        """Wall time for stamps, never before that of any entry there is."""
        ...

    def stream(self, name: StreamName) -> StreamRecord | None: ...

    def last_commit(self, stream: StreamRecord) -> Commit | None: ...

    def producer(self, stream: StreamRecord, producer: str) -> ProducerRecord | None: ...

    def query(self, query: QueryId) -> QueryRecord | None: ...

    def run_instance(self, query: QueryId, run: str) -> Instance | None:
        """The instance a run was given, if it ever took the query over."""
        ...

    def marked(self, query: QueryId, batch: BatchId) -> Lsn | None:
        """The marker of a batch."""
        ...

    def head(self, lsn: Lsn) -> Head | None: ...

    def entry(self, lsn: Lsn) -> Entry | None: ...


@dataclass(frozen=True)
class ProducerRecord:
    """The last sequence of a producer on a stream, and what it was answered."""

    sequence: int
    answer: Appended


@dataclass(frozen=True)
class Showing:
    """Index updates of one commit in one stream."""

    stream_id: int
    commit: Commit
    covered: tuple[tuple[Substream, Covered], ...]


@dataclass(frozen=True)
class Plan:
    """Everything one operation changes, to be applied as one. An empty plan changes nothing.

    `offsets` is the entry that now holds the recorded offsets of a batch not yet marked; `mark`
    ends that record of its batch and of all before it.
    """

    answer: Any
    entries: tuple[Entry, ...] = ()
    stream: StreamRecord | None = None
    showings: tuple[tuple[StreamName, Showing], ...] = ()
    producer: tuple[int, str, ProducerRecord] | None = None
    query: QueryRecord | None = None
    run: tuple[QueryId, str, Instance] | None = None
    mark: tuple[QueryId, BatchId, Lsn] | None = None
    offsets: tuple[QueryId, BatchId, Lsn] | None = None

    @property
    def changes(self) -> bool:
        return bool(self.entries) or self.stream is not None or self.query is not None
