"""Decide on snapshots of state in the log: which a marker may name, and what that lets go.

Of every state store the log keeps the newest snapshot that a marker names and the change logs of
the batches after it, so that the two together are the store at the last marker. Files of a
snapshot are appended like other checkpoint files; those that no snapshot holds any more wait, as
those of no marker do, until they are reclaimed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from penstock.errors import BadCall
from penstock.log.contract import Head
from penstock.log.state import StoreRecord
from penstock.log.view import View
from penstock.model.ids import (
    KEY_BYTES_MAX,
    BatchId,
    FilePath,
    Lsn,
    QueryId,
    change_log_store,
    snapshot_store,
    snapshot_version,
)
from penstock.model.marker import Marker, Snapshot


@dataclass(frozen=True)
class Kept:
    """The changes of a marker to the stores of its query."""

    stores: tuple[StoreRecord, ...] = ()
    named: tuple[Lsn, ...] = ()
    loosed: tuple[Lsn, ...] = ()
    forgotten: tuple[tuple[QueryId, str], ...] = ()


def keep_snapshots(marker: Marker, view: View) -> Kept:
    """The newest snapshot of each store that the marker names, in place of the one before.

    A store that has change logs and no snapshot yet is kept from this batch on. A marker that says
    nothing of snapshots lets all of them go: its run keeps them in the checkpoint location alone.
    """
    if marker.snapshots is msgspec.UNSET:
        kept_stores = tuple(view.stores(marker.query))
        return Kept(
            loosed=tuple(lsn for each in kept_stores for lsn in each.entries),
            forgotten=tuple((marker.query, each.folder) for each in kept_stores),
        )
    stores: dict[str, StoreRecord] = {}
    named: list[Lsn] = []
    loosed: list[Lsn] = []
    taken = {file.entry for file in marker.files}
    for snapshot in marker.snapshots:
        before = view.store(marker.query, snapshot.folder)
        _check(marker, snapshot, before, view, is_repeated=snapshot.folder in stores)
        _check_files(marker, snapshot, before, taken, view)
        following = BatchId(snapshot.batch + 1)
        stores[snapshot.folder] = StoreRecord(snapshot.folder, following, snapshot.files)
        now = set(snapshot.entries)
        named += snapshot.entries
        loosed += [lsn for lsn in before.entries if lsn not in now] if before is not None else []
    for file in marker.files:
        folder = change_log_store(file.path)
        if folder is None or folder in stores or view.store(marker.query, folder) is not None:
            continue
        stores[folder] = StoreRecord(folder, marker.batch)
    _check_folders(marker, stores)
    return Kept(tuple(stores.values()), tuple(named), tuple(loosed))


def _check_folders(marker: Marker, folders: Iterable[str]) -> None:
    """Refuse a store that cannot be remembered under its query's id and its folder."""
    room = KEY_BYTES_MAX - 1 - len(marker.query.encode("utf-8"))
    for folder in folders:
        size = len(folder.encode("utf-8"))
        if not 1 <= size <= room:
            raise BadCall(
                f"the folder {folder[:80]!r} of a state store, named by batch {marker.batch} of "
                f"the query {marker.query!r}, has {size} bytes, and its state can be kept in the "
                f"log with at most {room}; give the store or the query a shorter name, or keep "
                "snapshots in the checkpoint location alone",
                code="bad_request",
            )


def _check(
    marker: Marker,
    snapshot: Snapshot,
    before: StoreRecord | None,
    view: View,
    *,
    is_repeated: bool,
) -> None:
    record = view.query(marker.query)
    own = [file.path for file in snapshot.files if snapshot_version(file.path) is not None]
    if is_repeated:
        fact = "is named twice"
    elif snapshot.batch > marker.batch:
        fact = "is of a later batch"
    elif record is not None and snapshot.batch + 1 < record.trimmed:
        fact = f"would need change logs below batch {record.trimmed}, which are trimmed"
    elif before is not None and before.files and snapshot.batch < before.needs_from:
        fact = f"is not newer than the one of batch {before.needs_from - 1}, which is named already"
    elif [snapshot_version(path) for path in own] != [snapshot.batch + 1]:
        fact = f"has {own} where it must have one file of version {snapshot.batch + 1}"
    else:
        return
    raise _refusal(marker, snapshot, fact)


def _check_files(
    marker: Marker, snapshot: Snapshot, before: StoreRecord | None, taken: set[Lsn], view: View
) -> None:
    """Every part is there, of the file it is named for, and this run's or named before."""
    known = {} if before is None else {file.path: file.entries for file in before.files}
    for file in snapshot.files:
        heads = [view.head(lsn) for lsn in file.entries]
        size = sum(head.payload_bytes for head in heads if head is not None)
        fact = None
        if snapshot_store(file.path) != snapshot.folder:
            fact = f"has {file.path}, which is no file of a snapshot of that store"
        elif taken & set(file.entries) or len(set(file.entries)) < len(file.entries):
            fact = f"has an entry of {file.path} that is named twice"
        elif not all(_is_part(marker, file.path, head) for head in heads):
            fact = f"has {file.path} in the entries {file.entries}, which are not all parts of it"
        elif size != file.file_bytes:
            fact = f"has {file.path} with {file.file_bytes} bytes, and its parts have {size}"
        elif known.get(file.path) != file.entries and not _is_own(marker, heads):
            fact = f"has {file.path} from another instance, which no marker names"
        if fact is not None:
            raise _refusal(marker, snapshot, fact)
        taken.update(file.entries)


def _is_part(marker: Marker, path: FilePath, head: Head | None) -> bool:
    return head is not None and (head.kind, head.producer, head.path) == (
        "file", marker.query, path,
    )  # fmt: skip


def _is_own(marker: Marker, heads: list[Head | None]) -> bool:
    return all(
        head is not None
        and head.instance == marker.instance
        and head.seq is not None
        and head.seq <= marker.batch
        for head in heads
    )


def _refusal(marker: Marker, snapshot: Snapshot, fact: str) -> BadCall:
    return BadCall(
        f"the snapshot of batch {snapshot.batch} of {snapshot.folder}, named by batch "
        f"{marker.batch} of the query {marker.query!r} under instance {marker.instance}, {fact}; "
        "name each store's newest snapshot once, with the entries that hold it",
        code="unknown_entries",
        status=409,
    )


def first_needed(view: View, query: QueryId) -> BatchId | None:
    """The first batch whose change logs some store needs; None: no store needs any from the log."""
    return min((each.needs_from for each in view.stores(query)), default=None)


def is_superseded(view: View, query: QueryId, head: Head) -> bool | None:
    """Whether a file that waits belongs to no snapshot that a marker can still name; None: it is
    not of a snapshot."""
    folder = snapshot_store(head.path) if head.path is not None else None
    if folder is None:
        return None
    store = view.store(query, folder)
    return store is not None and bool(store.files) and (head.seq or 0) < store.needs_from
