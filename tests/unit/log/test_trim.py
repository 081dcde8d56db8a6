"""What may be trimmed, on a real store, and that nothing is left of what has gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lmdb
import msgspec
import pytest

from penstock.admission.cut import Limits, cut_batch
from penstock.errors import PenstockError
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import (
    DeleteQuery,
    DeleteStream,
    ForgetConsumer,
    Mark,
    Move,
    MovePosition,
    Operation,
    Reclaim,
    Register,
    ResetQuery,
    TrimQuery,
    TrimStream,
)
from penstock.log.reading.recovery import checkpoint_of, file_bytes
from penstock.log.reading.visible import (
    Range,
    check_position,
    earliest,
    latest,
    page,
)
from penstock.log.retention.collector import Collector
from penstock.log.store import repair
from penstock.log.store.layout import TABLES, Tables
from penstock.log.store.view import StoreView
from penstock.model.ids import BatchId, Lsn, QueryId, StreamName
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from support.log.drafts import draft, files, make, mark, pending, rows, stamp, take

S, Q = StreamName("s"), QueryId("q")
AWAY_MS = 10_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog.open(tmp_path / "data", Settings(), clock)
    log.run(make())
    yield log
    invariants.check(log)
    log.close()


def refused(log: EmbeddedLog, operation: Operation, code: str) -> str:
    with pytest.raises(PenstockError) as caught:
        log.run(operation)
    assert caught.value.code == code
    return caught.value.message


def trim(until: int, forget: int = 0) -> TrimStream:
    return TrimStream(S, Lsn(until), AWAY_MS, Lsn(forget))


def reading(position: int) -> Register:
    return Register("group", "g", S, Lsn(position))


def sizes(view: StoreView) -> dict[str, int]:
    names = ("entries", "tags", "commits", "visible", "producers", "producer_uses", "waiting")
    return {name: int(view.txn.stat(view.tables[name])["entries"]) for name in names}


def test_a_trim_removes_rows_from_every_index_and_keeps_the_totals(log: EmbeddedLog) -> None:
    for value in range(6):
        log.run(rows(draft(value % 2, value), producer="p", sequence=value + 1))
    done = log.run(trim(4, forget=4))
    assert (done.until, done.entries) == (4, 4)
    with log.reading() as view:
        stream = view.stream(S)
        assert stream is not None
        assert (earliest(view, stream), latest(view, stream)) == (4, 6)
        assert sizes(view) == {
            "entries": 2, "tags": 2, "commits": 3, "visible": 2, "producers": 1,
            "producer_uses": 1, "waiting": 0,
        }  # fmt: skip
        last = view.last_commit(stream)
        assert last is not None
        assert last.rows_total == 6
        # Rows are counted from the trim point on, not from the beginning.
        assert cut_batch(view, stream, Lsn(4), Lsn(6), Limits(1)).end == 5


def test_rows_at_or_below_the_trim_point_are_an_error_and_never_fewer_rows(
    log: EmbeddedLog,
) -> None:
    for value in range(4):
        log.run(rows(draft(0, value)))
    log.run(trim(2))
    with log.reading() as view:
        stream = view.stream(S)
        assert stream is not None
        for after in (0, 1):
            with pytest.raises(PenstockError) as caught:
                check_position(view, stream, Lsn(after))
            assert (caught.value.code, caught.value.http_status) == ("trimmed", 410)
            for fact in ("'s'", f"after {after}", "up to 2"):
                assert fact in caught.value.message
            with pytest.raises(PenstockError):
                page(view, Range(stream, Lsn(after), Lsn(4)), 1 << 20, 10)
        assert len(page(view, Range(stream, Lsn(2), Lsn(4)), 1 << 20, 10)[0]) == 2


def test_what_a_consumer_has_not_dealt_with_stays(log: EmbeddedLog, clock: ManualClock) -> None:
    for value in range(5):
        log.run(rows(draft(0, value)))
    log.run(reading(2))
    message = refused(log, trim(3), "still_needed")
    assert "the group 'g' at position 2" in message
    assert log.run(trim(2)).until == 2
    log.run(MovePosition("group", "g", (Move(S, Lsn(4), Lsn(2)),)))
    assert log.run(trim(4)).until == 4
    refused(log, trim(5), "still_needed")
    clock.turn(AWAY_MS + 1)
    assert log.run(trim(5)).until == 5, "a consumer that stays away is not waited for"
    refused(log, MovePosition("group", "g", (Move(S, Lsn(4)),)), "trimmed")


def test_a_consumer_that_says_it_is_there_is_waited_for(
    log: EmbeddedLog, clock: ManualClock
) -> None:
    log.run(rows(draft(0, 1)))
    log.run(reading(0))
    clock.turn(AWAY_MS)
    log.run(MovePosition("group", "g", (Move(S),)))
    clock.turn(AWAY_MS)
    refused(log, trim(1), "still_needed")
    log.run(ForgetConsumer("group", "g"))
    assert log.run(trim(1)).until == 1


def test_two_consumers_under_one_name_are_told(log: EmbeddedLog) -> None:
    for value in range(3):
        log.run(rows(draft(0, value)))
    log.run(reading(0))
    moved = MovePosition("group", "g", (Move(S, Lsn(2), Lsn(0)),))
    log.run(moved)
    log.run(moved)  # a repeat of the same is no conflict
    message = refused(log, MovePosition("group", "g", (Move(S, Lsn(1), Lsn(0)),)), "conflict")
    assert "another consumer" in message
    refused(log, MovePosition("group", "g", (Move(S, Lsn(9)),)), "position_past_end")
    refused(log, MovePosition("group", "h", (Move(S, Lsn(1)),)), "unknown_consumer")


def marked(log: EmbeddedLog, batch: int, *, reads: int = 0, copied: int | None = None) -> Lsn:
    """A batch of `q` with one row in `s` and one file, marked; how far it had read `s`."""
    by = stamp(batch=batch)
    (entry,) = log.run(pending(draft(0, batch), by=by))
    (file,) = log.run(files(f"offsets/{batch}", batch=batch))
    operation = mark(entry, batch=batch, files={f"offsets/{batch}": file})
    positions = {"in": Lsn(reads)} if reads else {}
    marker = msgspec.structs.replace(operation.marker, positions=positions)
    at: Lsn = log.run(Mark(marker, None if copied is None else BatchId(copied)))
    return at


def test_a_stopped_query_keeps_what_its_last_marker_has_not_read(log: EmbeddedLog) -> None:
    log.run(make("in"))
    places = [log.run(rows(draft(0, value), stream="in")).position for value in range(3)]
    log.run(take())
    log.run(Register("query", "q", StreamName("in"), Lsn(0)))
    up_to = TrimStream(StreamName("in"), Lsn(places[0]), AWAY_MS)
    assert "the query 'q' at position 0" in refused(log, up_to, "still_needed")
    marked(log, 0, reads=places[1])
    assert log.run(up_to).until == places[0], "the marker says more than the question did"
    beyond = TrimStream(StreamName("in"), Lsn(places[2]), AWAY_MS)
    assert f"the query 'q' at position {places[1]}" in refused(log, beyond, "still_needed")


def test_a_query_whose_last_marker_names_no_input_keeps_what_is_left_of_it(
    log: EmbeddedLog,
) -> None:
    """The position kept for it may lie before what its earlier markers let go."""
    log.run(make("in"))
    places = [log.run(rows(draft(0, value), stream="in")).position for value in range(3)]
    log.run(take())
    log.run(Register("query", "q", StreamName("in"), Lsn(0)))
    marked(log, 0, reads=places[0])
    log.run(TrimStream(StreamName("in"), Lsn(places[0]), AWAY_MS))
    marked(log, 1)
    beyond = TrimStream(StreamName("in"), Lsn(places[1]), AWAY_MS)
    assert "the query 'q'" in refused(log, beyond, "still_needed")


def test_an_entry_that_may_still_be_marked_is_not_trimmed(log: EmbeddedLog) -> None:
    log.run(take())
    (early,) = log.run(pending(draft(0, 7)))
    until = log.run(rows(draft(0, 8))).position
    log.run(trim(until))
    with log.reading() as view:
        assert view.head(early) is not None
    at = log.run(mark(early))
    with log.reading() as view:
        stream = view.stream(S)
        assert stream is not None
        assert len(page(view, Range(stream, Lsn(until), at), 1 << 20, 10)[0]) == 1


def test_what_can_never_be_marked_is_reclaimed_and_nothing_else(log: EmbeddedLog) -> None:
    log.run(take())
    (lost,) = log.run(pending(draft(0, 1), by=stamp(attempt=1)))
    (won,) = log.run(pending(draft(0, 2)))
    (offsets,) = log.run(files("offsets/0"))
    (later,) = log.run(pending(draft(0, 3), by=stamp(batch=1)))
    everything = Reclaim(Q, (lost, won, offsets, later))
    assert log.run(everything).entries == 0, "all of it may still be marked"
    log.run(mark(won, files={"offsets/0": offsets}))
    assert log.run(everything).entries == 1
    (recorded,) = log.run(files("offsets/1", batch=1))
    log.run(take(run="r2"))
    again = Reclaim(Q, (lost, won, offsets, later, recorded))
    assert log.run(again).entries == 1, "the instance that wrote `later` was taken over"
    with log.reading() as view:
        is_kept = {lsn: view.head(lsn) is not None for lsn in (lost, won, offsets, later, recorded)}
    assert is_kept == {lost: False, won: True, offsets: True, later: False, recorded: True}


def test_markers_that_a_recovery_may_need_stay(log: EmbeddedLog) -> None:
    log.run(take())
    for batch in range(6):
        marked(log, batch, copied=batch - 2 if batch > 1 else None)
    assert "up to 3" in refused(log, TrimQuery(Q, BatchId(5)), "still_needed")
    assert log.run(TrimQuery(Q, BatchId(3))).until == 3
    with log.reading() as view:
        left = checkpoint_of(view, Q, BatchId(2), 100, 1 << 20)
        assert [marker.batch for marker in left.markers] == [3, 4, 5]
        for marker in left.markers:
            assert file_bytes(view, Q, marker.files[0].entry) == marker.files[0].path.encode()
        with pytest.raises(PenstockError) as caught:
            checkpoint_of(view, Q, BatchId(1), 100, 1 << 20)
        assert (caught.value.code, caught.value.http_status) == ("trimmed", 410)
        # Its rows are still there, so its marker is, for those who read the raw log.
        stream = view.stream(S)
        assert stream is not None
        assert len(page(view, Range(stream, Lsn(0), latest(view, stream)), 1 << 20, 10)[0]) == 6
    log.run(trim(10**6))
    refused(log, mark(batch=1), "already_marked")


def test_a_marker_goes_with_the_last_of_its_tags(log: EmbeddedLog) -> None:
    log.run(take())
    at = [marked(log, batch, copied=batch) for batch in range(2)]
    log.run(TrimQuery(Q, BatchId(1)))
    with log.reading() as view:
        assert view.head(at[0]) is not None
    log.run(trim(at[0]))
    with log.reading() as view:
        assert view.head(at[0]) is None
        assert view.head(at[1]) is not None


def test_a_query_that_is_reset_begins_anew_and_its_output_stays(log: EmbeddedLog) -> None:
    log.run(take())
    for batch in range(3):
        marked(log, batch)
    end = log.run(rows()).position
    taken = log.run(ResetQuery(Q, "reset"))
    assert taken.instance == 2
    refused(log, mark(batch=3), "fenced")
    assert log.run(take(run="r2")).marker is None
    assert log.run(mark(instance=3, batch=0)) > end
    with log.reading() as view:
        stream = view.stream(S)
        assert stream is not None
        assert len(page(view, Range(stream, Lsn(0), end), 1 << 20, 10)[0]) == 3


def test_a_deleted_query_counts_on_if_it_comes_back(log: EmbeddedLog) -> None:
    log.run(take())
    marked(log, 0)
    log.run(pending(draft(0, 9), by=stamp(batch=1)))
    log.run(DeleteQuery(Q))
    refused(log, mark(batch=1), "unknown_query")
    with log.reading() as view:
        assert sizes(view)["waiting"] == 0
        assert view.query(Q) is None
    assert log.run(take(run="r2")).instance == 2
    refused(log, mark(instance=1, batch=1), "fenced")


def test_what_a_cut_leaves_unnamed_can_be_reclaimed(tmp_path: Path, clock: ManualClock) -> None:
    """A damaged end takes a marker with it: its entries wait again, then in vain."""
    log = EmbeddedLog.open(tmp_path / "cut", Settings(), clock)
    log.run(make())
    log.run(take())
    at = marked(log, 0)
    log.run(rows(draft(0, 5)))
    log.close()
    store = tmp_path / "cut" / "log"
    with lmdb.open(str(store), max_dbs=len(TABLES), map_size=1 << 30) as env:
        tables = Tables(env)
        repair.cut_from(env, tables, at, clock)
    log = EmbeddedLog.open(tmp_path / "cut", Settings(), clock)
    try:
        invariants.check(log)
        with log.reading() as view:
            waiting = tuple(view.waiting(Q))
        assert len(waiting) == 2
        # The query was taken over by the cut, and runs the batch again with these offsets.
        assert log.run(Reclaim(Q, waiting)).entries == 1
        invariants.check(log)
    finally:
        log.close()


def test_a_cut_forgets_the_producers_of_a_stream_that_was_deleted_and_not_swept(
    tmp_path: Path, clock: ManualClock
) -> None:
    log = EmbeddedLog.open(tmp_path / "cut", Settings(), clock)
    log.run(make())
    log.run(rows(draft(0, 1), producer="p", sequence=0))
    at = log.run(rows(draft(0, 2), producer="p", sequence=1)).position
    log.run(DeleteStream(S))
    log.close()
    with lmdb.open(str(tmp_path / "cut" / "log"), max_dbs=len(TABLES), map_size=1 << 30) as env:
        repair.cut_from(env, Tables(env), at, clock)
    log = EmbeddedLog.open(tmp_path / "cut", Settings(), clock)
    try:
        invariants.check(log)
        with log.reading() as view:
            assert sizes(view)["producers"] == sizes(view)["producer_uses"] == 0
    finally:
        log.close()


def test_a_trim_after_the_clock_has_jumped_ahead_waits_for_who_was_heard_of_before_it(
    log: EmbeddedLog, clock: ManualClock
) -> None:
    collector = Collector(log, clock)
    log.run(Register("group", "g", S, Lsn(0)))
    log.run(rows(draft(0, 1)))
    clock.wall_error_ms = 30 * AWAY_MS
    last = log.run(rows(draft(0, 2))).position
    with log.reading() as view:
        now_ms = collector.now_ms(view)
        assert view.now_ms - now_ms >= 29 * AWAY_MS
    refused(log, TrimStream(S, last, AWAY_MS, now_ms=now_ms), "still_needed")
    clock.turn(2 * AWAY_MS)
    with log.reading() as view:
        now_ms = collector.now_ms(view)
    assert log.run(TrimStream(S, last, AWAY_MS, now_ms=now_ms)).entries == 2, "away for so long"
