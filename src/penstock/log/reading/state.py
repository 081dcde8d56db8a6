"""The question a recovery asks about state: what brings each store up to the last marker."""

from __future__ import annotations

from itertools import islice

import msgspec

from penstock.log.contract import StoreRecord
from penstock.log.decide.trims import need_query
from penstock.log.store.view import StoreView
from penstock.model.answers import ChangeLog, StateInLog, StoredState
from penstock.model.ids import QueryId, change_log_store
from penstock.model.marker import Marker


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
