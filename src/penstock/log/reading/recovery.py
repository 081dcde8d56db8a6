"""Questions a recovery asks: checkpoint files of markers, and what brings each state store up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from penstock.errors import BadCall
from penstock.log.decide.need import need_query
from penstock.log.state import StoreRecord
from penstock.log.store import layout
from penstock.log.store.layout import Buffer
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
from penstock.model.marker import FileRef, Marker

CHANGE_BYTES = 64
"""About what an answer says of a file beside its path."""


def checkpoint_of(
    view: StoreView, query: QueryId, after: BatchId | None, markers_max: int, bytes_max: int
) -> Checkpoint:
    """The files after batch `after` (all without it), and the offsets of the first unmarked batch:
    markers of about `bytes_max`, but one at least.

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
    markers: list[MarkedBatch] = []
    size, has_more = 0, False
    for lsn in view.marks(query, first):
        payload = view.payload(lsn)
        size += len(payload)
        has_more = bool(markers) and (len(markers) >= markers_max or size > bytes_max)
        if has_more:
            break
        markers.append(_marker(payload, lsn))
    unmarked = BatchId(0 if record.marker is None else record.marker.batch + 1)
    return Checkpoint(
        tuple(markers),
        has_more,
        _offsets(view, query, unmarked),
    )


def _marker(payload: Buffer, lsn: Lsn) -> MarkedBatch:
    marker = msgspec.json.decode(payload, type=Marker)
    offsets = None if marker.offsets is msgspec.UNSET else marker.offsets
    return MarkedBatch(lsn, marker.batch, marker.instance, marker.commit, marker.files, offsets)


def _offsets(view: StoreView, query: QueryId, first: BatchId) -> RecordedOffsets | None:
    offsets = view.first_offsets(query, first)
    if offsets is None:
        return None
    batch, lsn = offsets
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


def state_of(
    view: StoreView, query: QueryId, after: str, stores_max: int, bytes_max: int
) -> StateInLog:
    """The stores whose folders come after `after`, of about `bytes_max` in the answer, but one at
    least. The task log is read from the oldest of their snapshots on, never from its beginning."""
    need_query(view, query)
    stores = list(islice((s for s in view.stores(query) if s.folder > after), stores_max + 1))
    page = _StatePage(stores[:stores_max], bytes_max)
    for lsn in view.marks(query, page.needs_from) if stores else ():
        marker = msgspec.json.decode(view.payload(lsn), type=Marker)
        for file in marker.files:
            page.add(file, marker.batch)
    answered = page.answer()
    return StateInLog(answered, len(answered) < len(stores))


class _StatePage:
    """A page of stores, in order, of which the last ones go to the next page when it is full."""

    def __init__(self, stores: Sequence[StoreRecord], bytes_max: int) -> None:
        self._stores = {each.folder: each for each in stores}
        self._bytes = {each.folder: _store_bytes(each) for each in stores}
        self._changes: dict[str, list[ChangeLog]] = {each.folder: [] for each in stores}
        self._bytes_max = bytes_max
        self._total = sum(self._bytes.values())
        self._cut()

    @property
    def needs_from(self) -> BatchId:
        return min(each.needs_from for each in self._stores.values())

    def add(self, file: FileRef, batch: BatchId) -> None:
        folder = change_log_store(file.path)
        store = self._stores.get(folder) if folder is not None else None
        if store is not None and batch >= store.needs_from:
            size = len(file.path) + CHANGE_BYTES
            self._changes[store.folder].append(ChangeLog(file.path, file.entry, batch))
            self._bytes[store.folder] += size
            self._total += size
            self._cut()

    def _cut(self) -> None:
        while self._total > self._bytes_max and len(self._stores) > 1:
            folder, _ = self._stores.popitem()
            self._total -= self._bytes.pop(folder)
            del self._changes[folder]

    def answer(self) -> tuple[StoredState, ...]:
        return tuple(
            _stored(each, tuple(self._changes[each.folder])) for each in self._stores.values()
        )


def _store_bytes(store: StoreRecord) -> int:
    """Bytes of a store in an answer, about, without its change logs."""
    files = (len(each.path) + CHANGE_BYTES + 12 * len(each.entries) for each in store.files)
    return len(store.folder) + CHANGE_BYTES + sum(files)


def _stored(store: StoreRecord, changes: tuple[ChangeLog, ...]) -> StoredState:
    return StoredState(store.folder, store.needs_from, store.files, changes)
