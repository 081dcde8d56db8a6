"""State of the log beside its entries: streams, queries, consumers, and indexes of commits."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.model.ids import BatchId, Instance, Lsn, QueryId, StreamName, Substream
from penstock.model.marker import MarkerRef, SnapshotFile

Reader = Literal["group", "query"]
"""Who a position is kept for: consumers outside Spark under a name, or a query."""


Emptying = Literal["reset", "delete", "forget"]
"""Why what a query has left goes: to begin anew, for ever, or without being remembered."""


STREAM_ID_MAX = (1 << 32) - 1
"""The largest number that a stream can have: keys of its commits hold 32 bits of it."""


class Retention(msgspec.Struct, frozen=True, array_like=True):
    """The time that rows of a stream without consumers are kept; None: for ever, however many."""

    age_ms_max: int | None = None
    bytes_max: int | None = None


class StreamRecord(msgspec.Struct, frozen=True, array_like=True):
    """A stream: `schema` is the IPC message of its canonical schema.

    `versions` are the schemas it had before, oldest first, each the beginning of the next. `turns`
    are the positions after which it had more substreams than before. No entry at or before `began`
    is its own: there was another stream of this name. `revision` counts its alterations.
    """

    id: int
    name: StreamName
    schema: bytes
    substreams: int
    key: tuple[str, ...]
    versions: tuple[bytes, ...] = ()
    turns: tuple[Lsn, ...] = ()
    retention: Retention = Retention()
    began: Lsn = Lsn(0)
    revision: int = 0


class QueryRecord(msgspec.Struct, frozen=True):
    """A query: who may mark, and what was marked last.

    `copied` is the last batch that its checkpoint location is known to have; markers of batches
    below `trimmed` are gone. While `emptying` says what for, nobody may write or take it over: what
    it has left goes in steps.
    """

    query: QueryId
    name: str | None
    instance: Instance
    run: str
    marker: MarkerRef | None = None
    copied: BatchId | None = None
    trimmed: BatchId = BatchId(0)
    emptying: Emptying | None = None


class StoreRecord(msgspec.Struct, frozen=True, array_like=True):
    """Files that bring a state store of a query back: those of its newest named snapshot, and the
    change logs from batch `needs_from` on. Without files there is no snapshot yet."""

    folder: str
    needs_from: BatchId
    files: tuple[SnapshotFile, ...] = ()

    @property
    def entries(self) -> tuple[Lsn, ...]:
        return tuple(lsn for file in self.files for lsn in file.entries)


class ConsumerRecord(msgspec.Struct, frozen=True, array_like=True):
    """The position up to which a stream is dealt with. `moved_at_ms`: when it was last heard of."""

    reader: Reader
    name: str
    stream: StreamName
    position: Lsn
    moved_at_ms: int


class DeletedStream(msgspec.Struct, frozen=True, array_like=True):
    """A stream that is gone and of which entries up to `until` may be left."""

    id: int
    name: StreamName
    substreams: int
    until: Lsn


class Run(msgspec.Struct, frozen=True):
    """A run that once took a query over."""

    run: str
    instance: Instance


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """One commit of one stream. Totals count from the stream's beginning, this one included, so
    that the rows between two positions are a difference and an end is found by halving.

    `origin_at_ms` is when the oldest row that its rows were made from first arrived in the log;
    None: they were made from none, and are as old as their own arrival.
    """

    lsn: Lsn
    rows_total: int
    bytes_total: int
    arrived_at_ms: int
    substreams: tuple[Substream, ...]
    origin_at_ms: int | None = None


class Covered(msgspec.Struct, frozen=True, array_like=True):
    """The entries that one commit makes visible in one substream, in the order it is read."""

    rows: int
    payload_bytes: int
    entries: tuple[Lsn, ...]


def stream_point(stream: StreamName) -> str:
    """Under which name the trim point of a stream is kept."""
    return f"s/{stream}"
