"""Answers about queries: who may write, what was marked last, every marker; as in `answers`."""

from __future__ import annotations

import msgspec

from penstock.model.ids import BatchId, Instance, Lsn, QueryId
from penstock.model.marker import MarkerRef


class AppendLimits(msgspec.Struct, frozen=True):
    """Bounds of what a query appends: one entry, a request, the checkpoint files of a request.

    An entry is bounded by the server's setting, and by the messages that its log's servers take.
    """

    entry_bytes_max: int
    request_bytes_max: int
    request_files_max: int


class TakenOver(msgspec.Struct, frozen=True):
    """The instance of a query that may write from now on, and the marker it goes on from."""

    instance: Instance
    marker: MarkerRef | None
    limits: AppendLimits


class NewInstance(msgspec.Struct, frozen=True):
    """The instance of a query that fences all before it."""

    instance: Instance


class QueryDescription(msgspec.Struct, frozen=True):
    """A query: its current instance and run, its name, its last marker.

    `copied` is the last batch that its checkpoint location is known to have; markers of batches
    below `trimmed` are gone. `emptying` says why what it has left is being removed, if it is.
    """

    query: QueryId
    name: str | None
    instance: Instance
    run: str
    marker: MarkerRef | None = None
    copied: BatchId | None = None
    trimmed: BatchId = BatchId(0)
    emptying: str | None = None


class QueryList(msgspec.Struct, frozen=True):
    """The queries of a log, by id."""

    queries: tuple[QueryDescription, ...]


class MarkerLine(msgspec.Struct, frozen=True):
    """A marker in the list of a query's markers: what it committed, without the entries.

    `origin_at_ms` is when the oldest row that the batch read first arrived in the log, which is its
    own arrival if it read none there; None if it wrote nothing, or all of that is trimmed.
    """

    lsn: Lsn
    batch: BatchId
    instance: Instance
    arrived_at_ms: int
    positions: dict[str, Lsn]
    mode: str
    rows: int
    origin_at_ms: int | None = None


class MarkerList(msgspec.Struct, frozen=True):
    """Markers of a query in the order of their batches."""

    markers: tuple[MarkerLine, ...]
