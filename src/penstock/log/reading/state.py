"""The question a recovery asks about state: what brings each store up to the last marker."""

from __future__ import annotations

from itertools import islice

import msgspec

from penstock.log.contract import StoreRecord
from penstock.log.decide.trims import need_query
from penstock.log.store.view import StoreView
from penstock.model.ids import BatchId, FilePath, Lsn, QueryId, change_log_store
from penstock.model.marker import Marker, SnapshotFile


class ChangeLog(msgspec.Struct, frozen=True):
    """A change log of a batch after the snapshot, or the checksum file of one."""

    path: FilePath
    entry: Lsn
    batch: BatchId


class StoredState(msgspec.Struct, frozen=True):
    """One state store: its newest snapshot, if there is one, and all that follows it in order."""

    folder: str
    needs_from: BatchId
    snapshot: tuple[SnapshotFile, ...]
    changes: tuple[ChangeLog, ...]


class StateInLog(msgspec.Struct, frozen=True):
    """Stores in the order of their folders; `more` says that others follow the last one."""

    stores: tuple[StoredState, ...]
    more: bool


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
