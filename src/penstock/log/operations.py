"""Operations on the log, with what some of them are answered.

An *operation* is one atomic step: it either takes place as a whole and is durable when it is
answered, or is refused and leaves no trace. Each says all it rests on, the time a consumer may
stay away included, so that deciding it again elsewhere, from the same state, comes to the same
plan.
"""

from __future__ import annotations

import msgspec

from penstock.log.retired_operations import RetiredOperation
from penstock.log.state import Reader, Retention, StreamRecord
from penstock.model.ids import BatchId, FilePath, Instance, Lsn, QueryId, StreamName, Substream
from penstock.model.marker import Marker, MarkerRef, Stamp


class Shape(msgspec.Struct, frozen=True, array_like=True):
    """The stream that rows were prepared for: if it has changed meanwhile, they are prepared anew.

    `routed_by` is the number of substreams that keys were divided among; None: placed otherwise.
    """

    stream_id: int
    version: int
    routed_by: int | None = None


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


class CreateStream(msgspec.Struct, frozen=True):
    """Make a stream, or find the one that is there; None takes what the existing one has."""

    name: StreamName
    schema: bytes
    substreams: int | None
    key: tuple[str, ...] | None


class StreamMade(msgspec.Struct, frozen=True):
    stream: StreamRecord
    created: bool


class AlterStream(msgspec.Struct, frozen=True):
    """Change a stream: columns added at its end, more substreams, how long rows are kept.

    `stream_id` and `revision` name the stream that the change was meant for, so that one that comes
    a second time undoes no later one; None: whatever is there.
    """

    name: StreamName
    schema: bytes | None = None
    substreams: int | None = None
    retention: Retention | None = None
    stream_id: int | None = None
    revision: int | None = None


class DeleteStream(msgspec.Struct, frozen=True):
    """Remove a stream; refused while anyone uses it, unless forced. Its name is free at once.

    With `stream_id` only that one, which may be gone already; None: whatever has the name.
    """

    name: StreamName
    force: bool = False
    stream_id: int | None = None


class SweepStream(msgspec.Struct, frozen=True):
    """Remove up to `entries_max` entries that a deleted stream has left."""

    stream_id: int
    entries_max: int


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


class Taken(msgspec.Struct, frozen=True):
    """The answer to a take-over."""

    instance: Instance
    marker: MarkerRef | None


class Mark(msgspec.Struct, frozen=True):
    """Commit a batch; the checkpoint location has all batches up to `copied`, if that is known."""

    marker: Marker
    copied: BatchId | None = None


class ResetQuery(msgspec.Struct, frozen=True):
    """Fence a query and forget its batches: it begins at batch 0 again, with a new checkpoint.

    The same run again changes nothing, whoever has taken the query over since. With `entries_max`
    about as many entries go at once, and the answer is `Unfinished` until none is left.
    """

    query: QueryId
    run: str
    entries_max: int | None = None


class DeleteQuery(msgspec.Struct, frozen=True):
    """Forget a query and reclaim what it has left; what it made visible stays.

    `remember` its last instance, so that a run from before is still told from one after. With
    `instance` only if that is still the current one, or was deleted already. `entries_max` is as of
    a reset.
    """

    query: QueryId
    remember: bool = True
    instance: Instance | None = None
    entries_max: int | None = None


class Unfinished(msgspec.Struct, frozen=True):
    """The answer to a step after which entries of the query are left; ask again."""

    entries: int


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


class Register(msgspec.Struct, frozen=True):
    """Hold a stream from `position` on for a consumer; one that is known keeps its position."""

    reader: Reader
    name: str
    stream: StreamName
    position: Lsn


class Move(msgspec.Struct, frozen=True):
    """A consumer's new position in one stream; None: it is where it was, and still there.

    `expect` is the position it is thought to have, so that two consumers with one name are told.
    """

    stream: StreamName
    position: Lsn | None = None
    expect: Lsn | None = None


class MovePosition(msgspec.Struct, frozen=True):
    """Move a consumer in all the streams named, or in none."""

    reader: Reader
    name: str
    moves: tuple[Move, ...]


class ForgetConsumer(msgspec.Struct, frozen=True):
    """Hold nothing for a consumer any more, in one stream or in all."""

    reader: Reader
    name: str
    stream: StreamName | None = None


class TrimStream(msgspec.Struct, frozen=True):
    """Remove what the commits up to `until` made visible; refused if somebody still needs it.

    Who has not been heard of for `away_ms` is not asked, by the log's time or by `now_ms`, the
    earlier of both: a clock that jumps ahead makes nobody stay away. Producers whose last append is
    at or before `forget` are forgotten: a repeat of it would be appended again.
    """

    stream: StreamName
    until: Lsn
    away_ms: int
    forget: Lsn = Lsn(0)
    now_ms: int | None = None


class TrimQuery(msgspec.Struct, frozen=True):
    """Remove the markers of batches below `below`, and the checkpoint files they name."""

    query: QueryId
    below: BatchId


class TrimTag(msgspec.Struct, frozen=True):
    """Remove the records with a tag up to `until`; one with other tags too stays under these."""

    tag: str
    until: Lsn


class Reclaim(msgspec.Struct, frozen=True):
    """Remove those of the entries named that no marker names and none can name any more."""

    query: QueryId
    entries: tuple[Lsn, ...]


class Trimmed(msgspec.Struct, frozen=True):
    """The entries a trim removed, and from where on the log is whole: all after `until`."""

    until: int
    entries: int = 0
    payload_bytes: int = 0


Operation = (
    CreateStream
    | AlterStream
    | DeleteStream
    | SweepStream
    | AppendRows
    | AppendPending
    | AppendFiles
    | TakeQuery
    | Mark
    | ResetQuery
    | DeleteQuery
    | AppendRecord
    | SetAux
    | Register
    | MovePosition
    | ForgetConsumer
    | TrimStream
    | TrimQuery
    | TrimTag
    | Reclaim
    | RetiredOperation
)


def payload_bytes(operation: Operation) -> int:
    """The bytes of memory an operation holds while it waits."""
    if isinstance(operation, AppendRows | AppendPending):
        return sum(len(draft.payload) for draft in operation.drafts)
    if isinstance(operation, AppendFiles):
        return sum(len(file.payload) for file in operation.files)
    if isinstance(operation, AppendRecord):
        return len(operation.payload)
    return len(operation.aux) if isinstance(operation, SetAux) else 0
