"""Data folders and stored states of the version before: opened as they are, and all is visible.

Both were written by that version: streams, a consumer, a record, a query with two marked batches,
and two aligned queries in the middle of a barrier, which hid what the first of them had committed.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.jetstream.state_dump import load
from penstock.log.backends.local import LocalLog
from penstock.log.operations import DeleteQuery, TrimStream
from penstock.log.reading.visible import Range, latest, page
from penstock.log.retired_operations import Align, StartBarrier
from penstock.log.store.layout import TABLES, Tables
from penstock.log.store.view import StoreView
from penstock.model.ids import BEFORE_ALL, Instance, Lsn, QueryId, StreamName
from support.log.backends import content
from support.log.drafts import draft, files, mark, pending, rows, stamp, take, values_of

FOLDERS = Path(__file__).parents[2] / "vectors" / "folders"
MID, PLAIN = StreamName("mid"), StreamName("plain")


@pytest.fixture
def old_folder(tmp_path: Path) -> Path:
    with tarfile.open(FOLDERS / "format_4_with_a_chain.tar.gz") as packed:
        packed.extractall(tmp_path / "data", filter="data")
    return tmp_path / "data"


@pytest.fixture
def log(old_folder: Path) -> Iterator[EmbeddedLog]:
    opened = EmbeddedLog.open(old_folder)
    yield opened
    opened.close()


def values(log: LocalLog, name: StreamName) -> list[int]:
    with log.reading() as view:
        stream = view.stream(name)
        assert stream is not None
        asked = Range(stream, BEFORE_ALL, latest(view, stream))
        stored, _ = page(view, asked, 1 << 20, 100)
        return [value for each in stored for value in values_of(each.payload)]


def test_an_old_folder_opens_whole_and_shows_what_a_barrier_hid(
    log: EmbeddedLog, old_folder: Path
) -> None:
    invariants.check(log)
    assert values(log, PLAIN) == [1, 2, 3, 10, 11]
    assert values(log, MID) == [50, 60], "committed, and hidden by the version before"
    with log.reading() as view:
        queries = {record.query: record for record in view.queries()}
        assert {query: record.instance for query, record in queries.items()} == {
            "a": 1, "b": 1, "count": 1,
        }  # fmt: skip
        counted = queries[QueryId("count")].marker
        assert counted is not None
        assert (counted.batch, counted.instance) == (1, 1)
        assert [record.name for record in view.consumers()] == ["g", "a", "b"]
    assert (old_folder / "format.json").read_text() == '{"format": 5}\n'


def test_queries_of_an_old_folder_go_on_where_they_were(log: EmbeddedLog) -> None:
    assert log.run(rows(draft(0, 1, 2), stream=PLAIN, producer="p", sequence=0)).duplicate
    for query, batch in (("count", 2), ("a", 1)):
        taken = log.run(take(query, run="next"))
        assert (taken.instance, taken.marker.batch) == (2, batch - 1)
        offsets = log.run(files(f"offsets/{batch}", query=query, instance=2, batch=batch))
        by = stamp(query, instance=2, batch=batch)
        entries = log.run(pending(draft(0, 99), stream=MID, by=by))
        log.run(
            mark(
                *entries,
                query=query,
                instance=2,
                batch=batch,
                stream=MID,
                files={f"offsets/{batch}": offsets[0]},
            )
        )
    assert values(log, MID) == [50, 60, 99, 99]
    log.run(DeleteQuery(QueryId("b")))
    with log.reading() as view:
        stream = view.stream(MID)
        assert stream is not None
        end = latest(view, stream)
    assert log.run(TrimStream(MID, end, away_ms=0)).entries == 3
    invariants.check(log)


def test_retired_operations_change_nothing_in_an_old_folder(log: EmbeddedLog) -> None:
    before = content(log)
    assert log.run(Align(QueryId("a"), Instance(7), (MID,))) is None
    assert log.run(StartBarrier(QueryId("nobody"))) is None
    assert content(log) == before


def test_the_tables_of_chains_are_left_and_a_copy_of_the_folder_opens_too(
    log: EmbeddedLog, old_folder: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "copy" / "log"
    copied.mkdir(parents=True)
    with (copied / "data.mdb").open("wb") as file:
        log.copy_to(file.fileno())
    with lmdb.open(str(copied), max_dbs=len(TABLES) + 2) as env:
        names = {name.decode() for name in env.begin().cursor().iternext(values=False)}
    assert names == {*TABLES, "aligned", "barriers"}
    again = EmbeddedLog.open(tmp_path / "copy")
    assert values(again, MID) == [50, 60]
    again.close()


def test_a_stored_state_with_a_chain_is_loaded_without_it(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path / "index"), max_dbs=len(TABLES), map_size=1 << 24) as env:
        tables = Tables(env)
        with env.begin(write=True) as txn:
            load(txn, tables, (FOLDERS / "state_with_a_chain.bin").read_bytes())
        with env.begin(buffers=True) as txn:
            view = StoreView(txn, tables)
            assert [record.query for record in view.queries()] == ["a", "b", "count"]
            stream = view.stream(MID)
            assert stream is not None
            commit = view.last_commit(stream)
            assert commit is not None
            assert (commit.rows_total, latest(view, stream)) == (2, commit.lsn)
            assert view.next_lsn == Lsn(18)
            names = {bytes(name).decode() for name in txn.cursor().iternext(values=False)}
    assert names == set(TABLES)
