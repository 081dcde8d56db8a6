"""Events of a query's release, and the effects it asks for; the specification's vocabulary.

A *piece* is the state one store committed in one batch, named by its unique id (checkpoint format
2) or by its path (format 1). A *writer* is the executor that holds it until it is durable; a
*generation* counts that writer's writes of the same piece, because a task that is run again writes
the same path once more.
"""

from __future__ import annotations

import msgspec


class OffsetsWritten(msgspec.Struct, frozen=True, tag="offsets"):
    """Spark closed `offsets/<batch>`; the file is held by the driver."""

    batch: int


class PieceWritten(msgspec.Struct, frozen=True, tag="written"):
    """A piece of the batch is complete on its writer, and nowhere else (ack 1)."""

    batch: int
    piece: str
    writer: str
    generation: int


class PieceDurable(msgspec.Struct, frozen=True, tag="durable"):
    """A write of a piece is durable (ack 2)."""

    batch: int
    piece: str
    writer: str
    generation: int


class CommitWritten(msgspec.Struct, frozen=True, tag="commit"):
    """Spark closed `commits/<batch>`; the file is held by the driver. `required`: its pieces."""

    batch: int
    required: frozenset[str]


class DeleteAsked(msgspec.Struct, frozen=True, tag="delete"):
    """Spark wants a file of the offset or commit log gone."""

    path: str


class WriterLost(msgspec.Struct, frozen=True, tag="lost"):
    """An executor is lost, with every piece that only it had."""

    writer: str


class Done(msgspec.Struct, frozen=True, tag="done"):
    """An effect that was asked for is done and durable."""

    effect: Effect


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """An effect that was asked for cannot be done, however often it is tried."""

    effect: Effect
    reason: str


class PutOffsets(msgspec.Struct, frozen=True, tag="put offsets"):
    """Make `offsets/<batch>` durable. An exclusive create."""

    batch: int


class PutMarker(msgspec.Struct, frozen=True, tag="put marker"):
    """Append the marker of the batch, which names its pieces and output, and its offsets, or has
    them in it if they are not durable yet."""

    batch: int


class PutCommit(msgspec.Struct, frozen=True, tag="put commit"):
    """Make `commits/<batch>` durable in the checkpoint location. An exclusive create."""

    batch: int


class CopyBatch(msgspec.Struct, frozen=True, tag="copy"):
    """Copy a marked batch from the log to the location: offsets, pieces, then the commit."""

    batch: int


class Delete(msgspec.Struct, frozen=True, tag="delete file"):
    """Delete the file from the checkpoint location."""

    path: str


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Fail the query; nothing is released any more."""

    reason: str


Effect = PutOffsets | PutMarker | PutCommit | CopyBatch | Delete | Stop
Event = (
    OffsetsWritten
    | PieceWritten
    | PieceDurable
    | CommitWritten
    | DeleteAsked
    | WriterLost
    | Done
    | Failed
)


def effect_name(effect: Effect) -> str:
    """Effect in words, for whoever waits for it."""
    match effect:
        case PutOffsets(batch):
            return f"offsets/{batch}"
        case PutMarker(batch):
            return f"the marker of batch {batch}"
        case PutCommit(batch):
            return f"commits/{batch}"
        case CopyBatch(batch):
            return f"the copy of batch {batch}"
        case Delete(path):
            return f"the delete of {path}"
        case Stop(reason):
            return reason
