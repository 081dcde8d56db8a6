"""Questions a recovery asks: checkpoint files of markers, and what brings each state store up."""

from __future__ import annotations

from itertools import islice

import msgspec

from penstock.errors import BadCall
from penstock.log.decide.need import need_query
from penstock.log.state import StoreRecord
from penstock.log.store import layout
from penstock.log.store.view import StoreView
from penstock.model.answers import (
    ChangeLog,
    Checkpoint,
    MarkedBatch,
    RecordedOffsets,
    StateInLog,
    StoredState,
)
from penstock.model.ids import BatchId, Lsn, QueryId, change_log_store
from penstock.model.marker import Marker


def checkpoint_of(
    view: StoreView, query: QueryId, after: BatchId | None, markers_max: int
) -> Checkpoint:
    """What follows batch `after` (all without it), and the offsets of the first unmarked batch.

    Refused as `trimmed` if markers between are gone: a location that lacks them cannot be brought
    up any more.
    """
    record = need_query(view, query)
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
    marker = msgspec.json.decode(view.payload(lsn), type=Marker)
    offsets = None if marker.offsets is msgspec.UNSET else marker.offsets
    return MarkedBatch(lsn, marker.batch, marker.instance, marker.commit, marker.files, offsets)


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


def state_of(view: StoreView, query: QueryId, after: str, stores_max: int) -> StateInLog:
    """The stores whose folders come after `after`. The task log is read from the oldest of their
    snapshots on, never from its beginning."""
    need_query(view, query)
    found = list(islice((s for s in view.stores(query) if s.folder > after), stores_max + 1))
    page = {each.folder: each for each in found[:stores_max]}
    changes: dict[str, list[ChangeLog]] = {folder: [] for folder in page}
    first = min((each.needs_from for each in page.values()), default=None)
    for lsn in view.marks(query, first) if first is not None else ():
        marker = msgspec.json.decode(view.payload(lsn), type=Marker)
        for file in marker.files:
            folder = change_log_store(file.path)
            if folder in page and marker.batch >= page[folder].needs_from:
                changes[folder].append(ChangeLog(file.path, file.entry, marker.batch))
    stores = tuple(_stored(each, tuple(changes[each.folder])) for each in page.values())
    return StateInLog(stores, len(found) > stores_max)


def _stored(store: StoreRecord, changes: tuple[ChangeLog, ...]) -> StoredState:
    return StoredState(store.folder, store.needs_from, store.files, changes)
