"""Questions a recovery asks: the checkpoint files in the log, per marker and by entry."""

from __future__ import annotations

from itertools import islice

import msgspec

from penstock.errors import BadCall
from penstock.log.store import layout
from penstock.log.store.view import StoreView
from penstock.model.answers import Checkpoint, MarkedBatch, RecordedOffsets
from penstock.model.ids import BatchId, Lsn, QueryId
from penstock.model.marker import Marker


def checkpoint_of(
    view: StoreView, query: QueryId, after: BatchId | None, markers_max: int
) -> Checkpoint:
    """What follows batch `after` (all without it), and the offsets of the first unmarked batch.

    Refused as `trimmed` if markers between are gone: a location that lacks them cannot be brought
    up any more.
    """
    record = view.query(query)
    if record is None:
        raise BadCall(
            f"there is no query {query!r}; check the id, and that this is the server it ran with",
            code="unknown_query",
            status=404,
        )
    first = BatchId(0 if after is None else after + 1)
    if first < record.trimmed:
        raise BadCall(
            f"the markers of the query {query!r} up to batch {record.trimmed - 1} are trimmed, and "
            f"those from batch {first} on were asked for; restore the checkpoint location, which "
            f"had every batch up to {record.copied}, or reset the query and start it anew",
            code="trimmed",
            status=410,
        )
    lsns = list(islice(view.marks(query, first), markers_max + 1))
    unmarked = BatchId(0 if record.marker is None else record.marker.batch + 1)
    return Checkpoint(
        tuple(_marker(view, lsn) for lsn in lsns[:markers_max]),
        len(lsns) > markers_max,
        _offsets(view, query, unmarked),
    )


def _marker(view: StoreView, lsn: Lsn) -> MarkedBatch:
    found = msgspec.json.decode(view.payload(lsn), type=Marker)
    return MarkedBatch(lsn, found.batch, found.instance, found.commit, found.files)


def _offsets(view: StoreView, query: QueryId, first: BatchId) -> RecordedOffsets | None:
    found = view.first_offsets(query, first)
    if found is None:
        return None
    batch, lsn = found
    head = view.head(lsn)
    if head is None or head.instance is None:
        raise layout.damaged(lsn, "an index names it as recorded offsets and it is none")
    return RecordedOffsets(batch, lsn, head.instance)


def file_bytes(view: StoreView, query: QueryId, lsn: Lsn) -> bytes:
    """The verified bytes of a checkpoint file, marked or not; `unknown_entries` if it is none."""
    head = view.head(lsn)
    if head is None or head.kind != "file" or head.producer != query:
        fact = "is not there" if head is None else f"is not one of them but a {head.kind!r} entry"
        if head is not None and head.kind == "file":
            fact = f"is a file of the query {head.producer!r}"
        raise BadCall(
            f"the entry {lsn}, asked for as a checkpoint file of the query {query!r}, {fact}; ask "
            "for the entries that a marker of this query names as files",
            code="unknown_entries",
            status=404,
        )
    return bytes(view.payload(lsn))
