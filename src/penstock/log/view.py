"""The view of a decision: one consistent state of the log.

A decision is a function of an operation and a `View`; it reads nothing else, writes nothing, and
either returns a `Plan` or raises the refusal. The store carries plans out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from penstock.log.contract import Entry, Head
from penstock.log.plan import ProducerRecord, SilentProducer
from penstock.log.rules import Rules
from penstock.log.state import (
    Commit,
    ConsumerRecord,
    Covered,
    DeletedStream,
    QueryRecord,
    Reader,
    Run,
    StoreRecord,
    StreamRecord,
)
from penstock.model.ids import BatchId, Instance, Lsn, QueryId, StreamName, Substream


class Place(NamedTuple):
    """The place of an entry, and when it came."""

    lsn: Lsn
    at_ms: int


class View(Protocol):
    """One consistent state of the log."""

    def places(self, count: int) -> tuple[Place, ...]:
        """The places of the entries that the operation decided on puts, in order: `count` is how
        many it has. They increase, with others' places between them perhaps."""
        ...

    @property
    def rules(self) -> Rules:
        """The rules that the operation is decided by, as all servers do."""
        ...

    @property
    def next_stream_id(self) -> int: ...

    @property
    def now_ms(self) -> int:
        """Wall time for stamps, never before that of any entry there is."""
        ...

    @property
    def steady_ms(self) -> int:
        """A time that goes on by what passes between operations, whatever clocks say."""
        ...

    def silent_producer(self) -> SilentProducer | None:
        """The producer of rows silent longest, if there are as many as may be remembered."""
        ...

    def silent_recorder(self) -> SilentProducer | None:
        """The same of producers of records."""
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

    def tail(self, tag: str) -> Lsn | None:
        """The last entry with the tag, trimmed or not."""
        ...

    def last_recorded(self, producer: str) -> int | None:
        """The highest sequence among a producer's records."""
        ...

    def recorded(self, producer: str, seq: int) -> Lsn | None:
        """The place where a record with this sequence was put, if that is still remembered."""
        ...

    def head(self, lsn: Lsn) -> Head | None: ...

    def entry(self, lsn: Lsn) -> Entry | None: ...

    def queries(self) -> Iterator[QueryRecord]: ...

    def commit_at(self, stream: StreamRecord, lsn: int) -> Commit | None:
        """The last commit at or before `lsn`."""
        ...

    def commits(self, stream: StreamRecord, start: int, until: int) -> Iterator[Commit]:
        """Every commit from `start` to `until`, both included, in order."""
        ...

    def oldest_origin(self, stream: StreamRecord, after: int, until: int) -> int | None:
        """The oldest origin among commits in `(after, until]` that are older than their arrival;
        None: there are none."""
        ...

    def covered(self, stream: StreamRecord, substream: Substream, commit: Lsn) -> Covered | None:
        """The entries that a commit makes visible in one substream."""
        ...

    def tagged(self, tag: str, start: int = 0) -> Iterator[Lsn]:
        """Every entry with the tag, from `start` on, in order."""
        ...

    def marks(self, query: QueryId, first: BatchId) -> Iterator[Lsn]:
        """The markers of a query from batch `first` on, in order."""
        ...

    def first_offsets(self, query: QueryId, first: BatchId) -> tuple[BatchId, Lsn] | None:
        """The newest offsets file of the first batch from `first` on that has one recorded."""
        ...

    def given_below(self, start: int) -> Lsn:
        """The place below which all that a start of the log gave out, synced or not, is there;
        before all, if nothing is known of the start."""
        ...

    def trimmed(self, point: str) -> Lsn:
        """The place up to which a stream or a tag is no longer whole."""
        ...

    def consumer(self, reader: Reader, name: str, stream: StreamName) -> ConsumerRecord | None: ...

    def consumers(self) -> Iterator[ConsumerRecord]: ...

    def waiting(self, query: QueryId) -> Iterator[Lsn]:
        """Pending entries and files of a query that no marker names, in order."""
        ...

    def store(self, query: QueryId, folder: str) -> StoreRecord | None: ...

    def stores(self, query: QueryId) -> Iterator[StoreRecord]:
        """The state stores whose snapshots the log is to have, in the order of their folders."""
        ...

    def runs(self, query: QueryId) -> Iterator[Run]: ...

    def deleted(self, stream_id: int) -> DeletedStream | None: ...

    def producers_until(self, stream: StreamRecord, last: Lsn) -> Iterator[str]:
        """Producers whose last append to the stream is at or before `last`."""
        ...
