"""Backups of a data folder: what is written, what is checked, and how one is restored.

A backup is a folder with the store's file as it was at one moment, and its format. The token is
not in it: a restored server makes one.

The index of a log in JetStream holds all of that log, up to the last message its server has
applied, so a copy of it is a backup like any other, and is restored as a log of its own.

A restored log lacks what came after the backup. So that nobody mistakes new entries for those, the
places after its end are left out (`GAP` of them) and a position among them is refused by name; and
every query counts on from an instance that no run from before can have had.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import lmdb
import msgspec

from penstock.errors import BadCall, Damaged
from penstock.log.store.entry_tables import GAPS
from penstock.log.store.folder import Folder, check_whole, make_private
from penstock.log.store.layout import TABLES, Tables
from penstock.log.store.refilling import is_whole
from penstock.log.store.repair import first_damaged
from penstock.log.store.view import StoreView
from penstock.model.ids import Instance, Lsn
from penstock.settings.server import Settings

GAP = 1 << 32
INSTANCES = 1 << 20
"""More entries, and more runs of a query, than can have come after a backup."""
OF_MESSAGES = ("parts", "parts_of", "published", "subjects")
"""What an index knows of the messages of its stream: nothing that a log of its own needs. An
operation of which only some messages had come was never answered, and has not taken place."""


@dataclass(frozen=True)
class Restored:
    """The place where the backup ends, and the first place that new entries get."""

    last: Lsn
    first_new: Lsn
    streams: int
    queries: int


def write_backup(target: Path, pieces: Iterable[bytes]) -> int:
    """Keep a copy of a store's file in a new folder; returns its size. Durable on return, and under
    its own name only when it is whole."""
    _refuse_if_used(target)
    store = _private_store(target)
    fresh, data = store / ".data.mdb.new", store / "data.mdb"
    size = 0
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        for piece in pieces:
            size += file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(data)
    check_whole(data)
    with _opened(store):
        pass
    _sync(store)
    folder = Folder.open(target)
    try:
        folder.write_format()
    finally:
        folder.close()
        (target / "lock").unlink(missing_ok=True)
    return size


def restore(backup: Path, target: Path, settings: Settings) -> Restored:
    """Make a data folder from a backup, in this order:

    1. refuse a folder that is not empty: nothing is ever written over;
    2. copy the file and see that it is whole, down to the checksums of its last entries;
    3. forget the stream it may have been the index of, leave the gap, and move the queries on;
    4. say that the folder is complete, so that a server may use it.
    """
    source = backup / "log" / "data.mdb"
    if not source.exists() or not (backup / "format.json").exists():
        raise BadCall(
            f"{backup} is not a backup: it has no log/data.mdb with a format.json; give the folder "
            "that penstock backup made",
            code="bad_request",
        )
    _refuse_if_used(target)
    store = _private_store(target)
    shutil.copyfile(source, store / "data.mdb")
    make_private(target)
    check_whole(store / "data.mdb")
    restored = _moved_on(store, settings)
    _sync(store)
    shutil.copyfile(backup / "format.json", target / "format.json")
    Folder.open(target).close()  # which makes all of it private
    return restored


def _refuse_if_used(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BadCall(
            f"{target} is not an empty folder; give one that is empty or not there yet",
            code="bad_request",
        )


def _private_store(target: Path) -> Path:
    """The folder of the store below a target, both their owner's alone before anything is in."""
    store = target / "log"
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    make_private(target)
    return store


def _opened(store: Path, map_bytes: int = 1 << 40) -> lmdb.Environment:
    try:
        return lmdb.open(
            str(store), map_size=map_bytes, max_dbs=len(TABLES), lock=False, mode=0o600
        )
    except lmdb.Error as error:
        raise Damaged(
            f"the copy in {store} is not a log: {error}; make the backup again", code="damaged"
        ) from error


def _moved_on(store: Path, settings: Settings) -> Restored:
    with _opened(store, settings.map_bytes) as env:
        tables = Tables(env)
        with env.begin(write=True) as txn:
            view = StoreView(txn, tables)
            damage = first_damaged(view, settings.verify_entries_max, settings.verify_bytes_max)
            if damage is not None:
                raise Damaged(
                    f"the backup is damaged: entry {damage.first} does not match its checksum; "
                    "take an older one",
                    code="damaged",
                )
            if not is_whole(view):
                raise Damaged(
                    "the backup is of an index whose rows were still being fetched from the "
                    "stream; take an older one, or make it again",
                    code="damaged",
                )
            for table in OF_MESSAGES:
                txn.drop(tables[table], delete=False)
            first = view.next_lsn
            queries = list(view.queries())
            for query in queries:
                later = msgspec.structs.replace(
                    query, instance=Instance(query.instance + INSTANCES), run="restored"
                )
                txn.put(query.query.encode(), msgspec.msgpack.encode(later), db=tables["queries"])
            gaps = [*view.gaps(), (int(first), first + GAP - 1)]
            txn.put(GAPS, msgspec.msgpack.encode(gaps), db=tables["counters"])
            txn.put(b"next_lsn", msgspec.msgpack.encode(first + GAP), db=tables["counters"])
            streams = len(list(view.streams()))
        env.sync(True)
    return Restored(Lsn(first - 1), Lsn(first + GAP), streams, len(queries))


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
