"""Snapshots of state in the log: which a marker may name, what is kept for them, what goes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import lmdb
import msgspec
import pytest

from penstock.errors import PenstockError
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import DeleteQuery, Mark, Operation, ResetQuery, TrimQuery
from penstock.log.reading.recovery import state_of
from penstock.log.retention.due import steps
from penstock.log.store import repair
from penstock.log.store.layout import TABLES, Tables
from penstock.model.answers import StateInLog
from penstock.model.ids import (
    BatchId,
    FilePath,
    Lsn,
    QueryId,
    change_log_store,
    snapshot_store,
    snapshot_version,
)
from penstock.model.marker import Snapshot, SnapshotFile
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from support.log.drafts import files, make, mark, take

Q = QueryId("q")
FOLDER, OTHER = "state/0/0", "state/0/1/left-keyToNumValues"
SETTINGS = Settings(trim_after_ms=0, markers_kept_min=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Iterator[EmbeddedLog]:
    """A query `q` at instance 1 whose batch 0 has change logs of two stores in the log."""
    log = EmbeddedLog.open(tmp_path / "data", Settings(), clock)
    log.run(make())
    log.run(take())
    batch(log, 0)
    yield log
    invariants.check(log)
    log.close()


def change_log(folder: str, number: int) -> str:
    return f"{folder}/{number + 1}_ab.changelog"


def batch(log: EmbeddedLog, number: int, *named: Snapshot, instance: int = 1) -> Lsn:
    """A batch with a change log of each store, marked; copied to the location at once."""
    paths = [change_log(folder, number) for folder in (FOLDER, OTHER)]
    lsns = log.run(files(*paths, batch=number, instance=instance))
    named_files = dict(zip(paths, lsns, strict=True))
    return Lsn(log.run(marker(number, *named, files=named_files, instance=instance)))


def marker(
    number: int, *named: Snapshot, files: dict[str, int] | None = None, instance: int = 1
) -> Mark:
    plain = mark(batch=number, files=files, instance=instance)
    with_snapshots = msgspec.structs.replace(plain.marker, snapshots=named)
    return Mark(with_snapshots, copied=BatchId(number))


def part(log: EmbeddedLog, path: str, number: int, instance: int = 1) -> SnapshotFile:
    """One file in two entries; its bytes are its path, twice."""
    lsns = log.run(files(path, path, batch=number, instance=instance))
    data = path.encode() * 2
    return SnapshotFile(FilePath(path), tuple(lsns), len(data), zlib.crc32(data))


def snapshot(
    log: EmbeddedLog,
    number: int,
    *kept: SnapshotFile,
    folder: str = FOLDER,
    instance: int = 1,
) -> Snapshot:
    """The snapshot of a batch: a table of its own, its zip, and tables of the one before it."""
    own = part(log, f"{folder}/SSTs/{number:06}-x.sst", number, instance)
    whole = part(log, f"{folder}/{number + 1}_ab.zip", number, instance)
    return Snapshot(folder, BatchId(number), (*kept, own, whole))


def refused(log: EmbeddedLog, operation: Operation, code: str, fact: str) -> None:
    with pytest.raises(PenstockError, match=fact) as caught:
        log.run(operation)
    assert caught.value.code == code


def collect(log: EmbeddedLog, clock: ManualClock) -> None:
    """Every step that is due, until none is, the log checked after each."""
    clock.turn(1)
    for _ in range(50):
        with log.reading() as view:
            due = steps(view, clock.now_ms, SETTINGS)
        if not due:
            return
        for step in due:
            log.run(step)
        invariants.check(log)
    raise AssertionError("the log is never done with its trims")


def state_in(
    log: EmbeddedLog, after: str = "", stores_max: int = 10, bytes_max: int = 1 << 20
) -> StateInLog:
    with log.reading() as view:
        return state_of(view, Q, after, stores_max, bytes_max)


def entries_of(log: EmbeddedLog) -> set[int]:
    with log.reading() as view:
        return set(view.tagged("f/q"))


def test_paths_say_which_store_they_are_of() -> None:
    parts_of_path = {
        "state/0/0/12.zip": ("state/0/0", None),
        "state/0/0/12_ab-1.zip": ("state/0/0", None),
        "state/0/3/SSTs/000012-ab.sst": ("state/0/3", None),
        "state/0/3/left-keyToNumValues/logs/7-ab.log": ("state/0/3/left-keyToNumValues", None),
        "state/0/3/left-keyToNumValues/7_ab.zip": ("state/0/3/left-keyToNumValues", None),
        "state/0/3/7_ab.changelog.crc": (None, "state/0/3"),
        "state/0/3/right/7.changelog": (None, "state/0/3/right"),
        "state/0/_metadata/metadata": (None, None),
        "offsets/12": (None, None),
    }
    for path, stores in parts_of_path.items():
        given = FilePath(path)
        assert (snapshot_store(given), change_log_store(given)) == stores, path
    assert snapshot_version(FilePath("state/0/0/12_ab-1.zip")) == 12
    assert snapshot_version(FilePath("state/0/0/SSTs/000012-ab.sst")) is None


def test_a_store_without_a_snapshot_keeps_all_its_change_logs(
    log: EmbeddedLog, clock: ManualClock
) -> None:
    for number in range(1, 5):
        batch(log, number)
    collect(log, clock)
    stores = state_in(log).stores
    assert [(each.folder, each.needs_from, each.snapshot) for each in stores] == [
        (FOLDER, 0, ()),
        (OTHER, 0, ()),
    ]
    assert [each.path for each in stores[0].changes] == [change_log(FOLDER, n) for n in range(5)]
    refused(log, TrimQuery(Q, BatchId(1)), "still_needed", "needs change logs from 0 on")


def test_the_newest_snapshot_and_what_follows_it_is_what_a_recovery_gets(log: EmbeddedLog) -> None:
    first = snapshot(log, 0)
    batch(log, 1, first)
    second = snapshot(log, 1, first.files[0])
    batch(log, 2, second)
    batch(log, 3)
    with_snapshot, without_snapshot = state_in(log).stores
    assert (with_snapshot.needs_from, with_snapshot.snapshot) == (2, second.files)
    assert [each.path for each in with_snapshot.changes] == [change_log(FOLDER, n) for n in (2, 3)]
    assert (without_snapshot.needs_from, len(without_snapshot.changes)) == (0, 4)
    page = state_in(log, stores_max=1)
    assert (page.stores, page.more) == ((with_snapshot,), True)
    page = state_in(log, after=FOLDER, stores_max=1)
    assert (page.stores, page.more) == ((without_snapshot,), False)
    page = state_in(log, bytes_max=1)
    assert (page.stores, page.more) == ((with_snapshot,), True)


def test_older_snapshots_and_their_change_logs_go_and_shared_files_stay(
    log: EmbeddedLog, clock: ManualClock
) -> None:
    first = snapshot(log, 0)
    other = snapshot(log, 0, folder=OTHER)
    batch(log, 1, first, other)
    batch(log, 2)
    second = snapshot(log, 2, first.files[0])
    second_other = snapshot(log, 2, folder=OTHER)
    batch(log, 3, second)
    collect(log, clock)
    # The other store still needs what follows batch 0.
    assert state_in(log).stores[1].needs_from == 1
    with log.reading() as view:
        assert view.query(Q).trimmed == 1  # type: ignore[union-attr]
    batch(log, 4, second_other)
    collect(log, clock)
    left = entries_of(log)
    assert set(first.files[0].entries) <= left, "a table that the newer snapshot holds too"
    assert not left & set(first.files[1].entries)
    assert not left & set(other.entries)
    assert left >= set(second.entries) | set(second_other.entries)
    with log.reading() as view:
        assert view.query(Q).trimmed == 3  # type: ignore[union-attr]
    assert [each.needs_from for each in state_in(log).stores] == [3, 3]


def test_the_log_does_not_grow_with_the_number_of_snapshots(
    log: EmbeddedLog, clock: ManualClock
) -> None:
    sizes = []
    for number in range(1, 12):
        named = [snapshot(log, number - 1, folder=folder) for folder in (FOLDER, OTHER)]
        batch(log, number, *named)
        collect(log, clock)
        sizes.append(len(entries_of(log)))
    assert sizes[1:] == [sizes[1]] * 10


def test_a_snapshot_that_no_marker_names_is_kept_while_one_may_and_then_reclaimed(
    log: EmbeddedLog, clock: ManualClock
) -> None:
    lost = snapshot(log, 0)
    batch(log, 1)
    collect(log, clock)
    assert entries_of(log) >= set(lost.entries), "the next marker may name it"
    named = snapshot(log, 1, lost.files[0])
    batch(log, 2, named)
    collect(log, clock)
    assert entries_of(log) >= set(named.entries)
    assert not entries_of(log) & set(lost.files[1].entries)
    left = snapshot(log, 2)
    log.run(take(run="r2"))
    collect(log, clock)
    assert not entries_of(log) & set(left.entries), "its instance was taken over"
    assert entries_of(log) >= set(named.entries)


def test_a_new_instance_goes_on_with_the_tables_that_an_older_one_left(log: EmbeddedLog) -> None:
    first = snapshot(log, 0)
    batch(log, 1, first)
    unnamed = snapshot(log, 1)
    log.run(take(run="r2"))
    stray = snapshot(log, 1, unnamed.files[0], instance=2)
    refused(log, marker(2, stray, instance=2), "unknown_entries", "which no marker names")
    second = snapshot(log, 2, first.files[0], instance=2)
    batch(log, 2, second, instance=2)
    assert state_in(log).stores[0].snapshot == second.files


def test_a_snapshot_that_is_not_whole_is_refused(log: EmbeddedLog) -> None:
    good = snapshot(log, 0)
    table, whole = good.files
    replace = msgspec.structs.replace
    wrong = {
        "is named twice": (good, good),
        "is of a later batch": (replace(good, batch=BatchId(2)),),
        "must have one file of version 1": (replace(good, files=(table,)),),
        "which is no file of a snapshot of that store": (replace(good, folder=OTHER),),
        "which are not all parts of it": (
            replace(good, files=(whole, replace(table, entries=(*table.entries, Lsn(999))))),
        ),
        "and its parts have": (replace(good, files=(whole, replace(table, file_bytes=3))),),
        "that is named twice": (
            replace(good, files=(whole, replace(table, entries=table.entries[:1] * 2))),
        ),
    }
    for fact, named in wrong.items():
        refused(log, marker(1, *named), "unknown_entries", fact)
    as_file = mark(batch=0, files={whole.path: whole.entries[0]}).marker.files
    plain = msgspec.structs.replace(marker(1).marker, files=as_file)
    refused(log, Mark(plain), "unknown_entries", "is not there|is part of a snapshot|of batch 0")
    batch(log, 1, good)
    refused(log, marker(2, good), "unknown_entries", "is not newer than the one of batch 0")


def test_a_run_that_keeps_snapshots_in_the_location_lets_those_in_the_log_go(
    log: EmbeddedLog, clock: ManualClock
) -> None:
    first = snapshot(log, 0)
    batch(log, 1, first)
    log.run(take(run="r2"))
    log.run(Mark(mark(batch=2, instance=2).marker, copied=BatchId(2)))
    assert state_in(log).stores == ()
    collect(log, clock)
    assert not entries_of(log)


@pytest.mark.parametrize("end", [DeleteQuery(Q), ResetQuery(Q, "r9")], ids=["deleted", "reset"])
def test_nothing_is_left_of_the_snapshots_of_a_query_that_is_gone(
    log: EmbeddedLog, end: Operation
) -> None:
    batch(log, 1, snapshot(log, 0))
    log.run(end)
    assert not entries_of(log)
    with log.reading() as view:
        assert not list(view.stores(Q))
        assert view.txn.stat(view.tables["waiting"])["entries"] == 0


def test_a_damaged_end_that_is_cut_off_takes_the_named_snapshots_with_it(
    tmp_path: Path, clock: ManualClock
) -> None:
    log = EmbeddedLog.open(tmp_path / "cut", Settings(), clock)
    log.run(make())
    log.run(take())
    first = snapshot(log, 0)
    batch(log, 0, first)
    cut = batch(log, 1, snapshot(log, 1, first.files[0]))
    log.close()
    store = str(tmp_path / "cut" / "log")
    with lmdb.open(store, max_dbs=len(TABLES), map_size=1 << 30) as env:
        repair.cut_from(env, Tables(env), cut, clock)
    log = EmbeddedLog.open(tmp_path / "cut", Settings(), clock)
    try:
        invariants.check(log)
        assert state_in(log).stores == ()
        # The query goes on, and its snapshots are kept again from the next marker on.
        batch(log, 1, instance=2)
        assert [each.needs_from for each in state_in(log).stores] == [1, 1]
        invariants.check(log)
    finally:
        log.close()
