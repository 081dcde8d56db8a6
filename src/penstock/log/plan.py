"""The plan that a decision comes to: all that one operation changes, to be applied as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.log.contract import Entry
from penstock.log.state import (
    Commit,
    ConsumerRecord,
    Covered,
    DeletedStream,
    QueryRecord,
    Reader,
    StoreRecord,
    StreamRecord,
)
from penstock.model.answers import Appended
from penstock.model.ids import BatchId, Instance, Lsn, QueryId, StreamName, Substream


@dataclass(frozen=True)
class ProducerRecord:
    """The last sequence of a producer on a stream, what it was answered, and when, by the log's
    steady time."""

    sequence: int
    answer: Appended
    heard_ms: int = 0


@dataclass(frozen=True)
class SilentProducer:
    """The producer that has been silent longest, under the key it is remembered by."""

    key: bytes
    heard_ms: int


@dataclass(frozen=True)
class Showing:
    """Index updates of one commit in one stream."""

    stream_id: int
    commit: Commit
    covered: tuple[tuple[Substream, Covered], ...]


class Removal(msgspec.Struct, frozen=True):
    """Rows of the indexes to remove. An entry goes with the last of its tags.

    `points` are the places up to which streams (`s/NAME`) and tags are no longer whole. What was
    reclaimed leaves none: a reader never lacks what could not be committed. `silent` and
    `silent_recorders` are producers of rows and of records, by the keys they are remembered under.
    """

    tags: tuple[tuple[str, Lsn], ...] = ()
    points: tuple[tuple[str, Lsn], ...] = ()
    commits: tuple[tuple[int, Lsn], ...] = ()
    visible: tuple[tuple[int, Substream, Lsn], ...] = ()
    producers: tuple[tuple[int, str], ...] = ()
    silent: tuple[bytes, ...] = ()
    silent_recorders: tuple[bytes, ...] = ()
    consumers: tuple[tuple[Reader, str, StreamName], ...] = ()
    marks: tuple[tuple[QueryId, BatchId], ...] = ()
    offsets: tuple[tuple[QueryId, BatchId], ...] = ()
    runs: tuple[tuple[QueryId, str], ...] = ()
    stores: tuple[tuple[QueryId, str], ...] = ()
    stream: StreamName | None = None
    query: QueryId | None = None
    swept: int | None = None


@dataclass(frozen=True)
class Plan:
    """All that one operation changes, to be applied as one. An empty plan changes nothing.

    `offsets` is the entry that now holds the recorded offsets of a batch not yet marked; `mark`
    ends that record of its batch and of all before it, and `named` are the entries it commits.
    `stores` are what the marker says of the query's state stores, and `loosed` the entries that
    were part of snapshots until then and are nobody's now.
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
    recorded: tuple[str, int, Lsn, int] | None = None
    aux: tuple[Lsn, bytes] | None = None
    named: tuple[Lsn, ...] = ()
    stores: tuple[StoreRecord, ...] = ()
    loosed: tuple[Lsn, ...] = ()
    consumers: tuple[ConsumerRecord, ...] = ()
    deleted: DeletedStream | None = None
    removal: Removal | None = None

    @property
    def changes(self) -> bool:
        single = (self.stream, self.query, self.aux, self.run, self.removal)
        return bool(self.entries or self.consumers) or any(each is not None for each in single)
