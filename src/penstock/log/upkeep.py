"""Operations that look after a log: who reads it, what is trimmed, how streams and queries change.

Each of them says all it rests on, the time a consumer may stay away included, so that deciding it
again elsewhere, from the same state, comes to the same plan.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.model.ids import BatchId, Instance, Lsn, QueryId, StreamName, Substream

Reader = Literal["group", "query"]
"""Who a position is kept for: consumers outside Spark under a name, or a query."""


class Retention(msgspec.Struct, frozen=True, array_like=True):
    """How long rows of a stream without consumers are kept; None: for ever, however many."""

    age_ms_max: int | None = None
    bytes_max: int | None = None


class Shape(msgspec.Struct, frozen=True, array_like=True):
    """The stream that rows were prepared for: if it has changed meanwhile, they are prepared anew.

    `routed_by` is the number of substreams that keys were divided among; None: placed otherwise.
    """

    stream_id: int
    version: int
    routed_by: int | None = None


class ConsumerRecord(msgspec.Struct, frozen=True, array_like=True):
    """How far someone has dealt with a stream. `moved_at_ms` is when that was last heard of."""

    reader: Reader
    name: str
    stream: StreamName
    position: Lsn
    moved_at_ms: int


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

    Who has not been heard of for `away_ms` is not asked. Producers whose last append is at or
    before `forget` are forgotten: a repeat of it would be appended again.
    """

    stream: StreamName
    until: Lsn
    away_ms: int
    forget: Lsn = Lsn(0)


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
    """What a trim removed, and from where on the log is whole: everything after `until`."""

    until: int
    entries: int = 0
    payload_bytes: int = 0


class AlterStream(msgspec.Struct, frozen=True):
    """Change a stream: columns added at its end, more substreams, how long rows are kept."""

    name: StreamName
    schema: bytes | None = None
    substreams: int | None = None
    retention: Retention | None = None


class DeleteStream(msgspec.Struct, frozen=True):
    """Remove a stream; refused while anyone uses it, unless forced. Its name is free at once."""

    name: StreamName
    force: bool = False


class SweepStream(msgspec.Struct, frozen=True):
    """Remove up to `entries_max` entries that a deleted stream has left."""

    stream_id: int
    entries_max: int


class ResetQuery(msgspec.Struct, frozen=True):
    """Fence a query and forget its batches: it begins at batch 0 again, with a new checkpoint."""

    query: QueryId
    run: str


class DeleteQuery(msgspec.Struct, frozen=True):
    """Forget a query and reclaim what it has left; what it made visible stays.

    `remember` its last instance, so that a run from before is still told from one after.
    """

    query: QueryId
    remember: bool = True


class DeletedStream(msgspec.Struct, frozen=True, array_like=True):
    """A stream that is gone and of which entries up to `until` may be left."""

    id: int
    name: StreamName
    substreams: int
    until: Lsn


class Removal(msgspec.Struct, frozen=True):
    """Rows of the indexes to remove. An entry goes with the last of its tags.

    `points` are the places up to which streams (`s/NAME`) and tags are no longer whole. What was
    reclaimed leaves none: a reader never lacks what could not be committed.
    """

    tags: tuple[tuple[str, Lsn], ...] = ()
    points: tuple[tuple[str, Lsn], ...] = ()
    commits: tuple[tuple[int, Lsn], ...] = ()
    visible: tuple[tuple[int, Substream, Lsn], ...] = ()
    producers: tuple[tuple[int, str], ...] = ()
    consumers: tuple[tuple[Reader, str, StreamName], ...] = ()
    marks: tuple[tuple[QueryId, BatchId], ...] = ()
    offsets: tuple[tuple[QueryId, BatchId], ...] = ()
    runs: tuple[tuple[QueryId, str], ...] = ()
    stores: tuple[tuple[QueryId, str], ...] = ()
    stream: StreamName | None = None
    query: QueryId | None = None
    swept: int | None = None


class Run(msgspec.Struct, frozen=True):
    """A run that once took a query over."""

    run: str
    instance: Instance


Upkeep = (
    Register
    | MovePosition
    | ForgetConsumer
    | TrimStream
    | TrimQuery
    | TrimTag
    | Reclaim
    | AlterStream
    | DeleteStream
    | SweepStream
    | ResetQuery
    | DeleteQuery
)


def stream_point(stream: StreamName) -> str:
    """Under which name the trim point of a stream is kept."""
    return f"s/{stream}"
