"""What a log is, whatever stores it: entries, operations with their answers, and the protocol.

An *operation* is one atomic step on the log: it either takes place as a whole and is durable when
it is answered, or is refused and leaves no trace.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Literal, Protocol

import msgspec

from penstock.log.retired_operations import RetiredOperation
from penstock.log.upkeep import Retention, Shape, Upkeep
from penstock.model.ids import BatchId, FilePath, Instance, Lsn, QueryId, StreamName, Substream
from penstock.model.marker import Marker, SnapshotFile, Stamp

Kind = Literal["rows", "pending", "marker", "take over", "file", "record"]


class Head(msgspec.Struct, frozen=True, array_like=True):
    """An entry without its payload. `checksum` and `payload_bytes` are the payload's.

    `rows` entries are visible by themselves, `pending` ones once a marker names them; the other
    kinds carry no rows. A `file` has its query as `producer`, its batch as `seq`, and a `path`.
    A `record` is bytes under the tags its writer chose. `version` is that of the stream's columns.
    """

    lsn: Lsn
    kind: Kind
    tags: tuple[str, ...]
    arrived_at_ms: int
    checksum: int
    payload_bytes: int
    rows: int = 0
    producer: str | None = None
    instance: Instance | None = None
    seq: int | None = None
    stamp: Stamp | None = None
    path: FilePath | None = None
    version: int = 0


class Entry(msgspec.Struct, frozen=True):
    """One place of the log. The payload is an encapsulated Arrow record batch, JSON,
    or the bytes of a file."""

    head: Head
    payload: bytes


class Draft(msgspec.Struct, frozen=True):
    """Rows on their way in: one record batch for one substream, serialised and summed."""

    substream: Substream
    payload: bytes
    rows: int
    checksum: int


class FileDraft(msgspec.Struct, frozen=True):
    """A checkpoint file on its way in, summed."""

    path: FilePath
    payload: bytes
    checksum: int


class StreamRecord(msgspec.Struct, frozen=True, array_like=True):
    """A stream: `schema` is the IPC message of its canonical schema.

    `versions` are the schemas it had before, oldest first, each the beginning of the next. `turns`
    are the positions after which it had more substreams than before. No entry at or before `began`
    is its own: there was another stream of this name.
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


class MarkerRef(msgspec.Struct, frozen=True):
    """The last marker of a query, as far as a new instance needs it."""

    lsn: Lsn
    batch: BatchId
    instance: Instance
    commit: str | None


class QueryRecord(msgspec.Struct, frozen=True):
    """A query: who may mark, and what was marked last.

    `copied` is the last batch that its checkpoint location is known to have; markers of batches
    below `trimmed` are gone.
    """

    query: QueryId
    name: str | None
    instance: Instance
    run: str
    marker: MarkerRef | None = None
    copied: BatchId | None = None
    trimmed: BatchId = BatchId(0)


class StoreRecord(msgspec.Struct, frozen=True, array_like=True):
    """What brings one state store of a query back: the files of its newest named snapshot, and the
    change logs from batch `needs_from` on. Without files there is no snapshot yet."""

    folder: str
    needs_from: BatchId
    files: tuple[SnapshotFile, ...] = ()

    @property
    def entries(self) -> tuple[Lsn, ...]:
        return tuple(lsn for file in self.files for lsn in file.entries)


class Taken(msgspec.Struct, frozen=True):
    """The answer to a take-over."""

    instance: Instance
    marker: MarkerRef | None


class CreateStream(msgspec.Struct, frozen=True):
    """Make a stream, or find the one that is there; None takes what the existing one has."""

    name: StreamName
    schema: bytes
    substreams: int | None
    key: tuple[str, ...] | None


class StreamMade(msgspec.Struct, frozen=True):
    stream: StreamRecord
    created: bool


class AppendRows(msgspec.Struct, frozen=True):
    """Append and make visible in one step; `sequence` with `producer` filters repeats."""

    stream: StreamName
    drafts: tuple[Draft, ...]
    producer: str | None = None
    sequence: int | None = None
    shape: Shape | None = None


class AppendPending(msgspec.Struct, frozen=True):
    """Append for a batch of a query; nothing is visible until a marker names the entries."""

    stream: StreamName
    stamp: Stamp
    drafts: tuple[Draft, ...]
    shape: Shape | None = None


class AppendFiles(msgspec.Struct, frozen=True):
    """Append checkpoint files of a batch; garbage unless the batch's marker names them."""

    query: QueryId
    instance: Instance
    batch: BatchId
    files: tuple[FileDraft, ...]


class TakeQuery(msgspec.Struct, frozen=True):
    """Become the instance of a query that may mark."""

    query: QueryId
    run: str
    name: str | None


class Mark(msgspec.Struct, frozen=True):
    """Commit a batch; the checkpoint location has all batches up to `copied`, if that is known."""

    marker: Marker
    copied: BatchId | None = None


class AppendRecord(msgspec.Struct, frozen=True):
    """Append bytes under tags of the caller's choice; the answer is the entry's place.

    With `expect` only if the last entry with that tag is exactly the one named (0: none yet), else
    `conflict`. With `producer` and `seq` a repeat is answered with the first one's place and not
    appended again; sequences count per producer and instance, in any order within a window.
    """

    tags: tuple[str, ...]
    payload: bytes
    expect: tuple[str, Lsn] | None = None
    producer: str | None = None
    instance: Instance | None = None
    seq: int | None = None


class SetAux(msgspec.Struct, frozen=True):
    """Put auxiliary data on an entry that is there, in place of what it had; answers its place."""

    lsn: Lsn
    aux: bytes


Operation = (
    CreateStream
    | AppendRows
    | AppendPending
    | AppendFiles
    | TakeQuery
    | Mark
    | AppendRecord
    | SetAux
    | RetiredOperation
    | Upkeep
)


def payload_bytes(operation: Operation) -> int:
    """How much memory an operation holds while it waits."""
    if isinstance(operation, AppendRows | AppendPending):
        return sum(len(draft.payload) for draft in operation.drafts)
    if isinstance(operation, AppendFiles):
        return sum(len(file.payload) for file in operation.files)
    if isinstance(operation, AppendRecord):
        return len(operation.payload)
    return len(operation.aux) if isinstance(operation, SetAux) else 0


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """One commit of one stream. Totals count from the stream's beginning, this one included, so
    that the rows between two positions are a difference and an end is found by halving."""

    lsn: Lsn
    rows_total: int
    bytes_total: int
    arrived_at_ms: int
    substreams: tuple[Substream, ...]


class Covered(msgspec.Struct, frozen=True, array_like=True):
    """What one commit makes visible in one substream, in the order it is read."""

    rows: int
    payload_bytes: int
    entries: tuple[Lsn, ...]


class Log(Protocol):
    """The writing side of a log. Reading is by `penstock.log.view.View`."""

    def submit(self, operation: Operation) -> Future[Any]:
        """Queue the operation; the future holds its answer once durable, or its refusal.

        Raises `busy` when the queue is full and `stopping` when the log is closing, with nothing
        queued.
        """
        ...

    def close(self) -> None:
        """Finish what is queued, refuse what comes after, release the folder."""
        ...
