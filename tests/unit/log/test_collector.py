"""What is collected when, with a clock turned by hand."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import lmdb
import pytest

from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.outcomes import unanswered
from penstock.log.operations import (
    AlterStream,
    DeleteStream,
    Mark,
    Move,
    MovePosition,
    Operation,
    Register,
)
from penstock.log.reading.visible import earliest, latest
from penstock.log.retention.collector import Collector
from penstock.log.state import Retention
from penstock.model.ids import BatchId, Lsn, QueryId, StreamName
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from support.log.drafts import draft, files, make, mark, pending, rows, stamp, take

S = StreamName("s")
SETTINGS = Settings(
    trim_after_ms=1_000, consumer_away_ms_max=60_000, trim_entries_max=3, markers_kept_min=2
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog.open(tmp_path / "data", SETTINGS, clock)
    log.run(make())
    yield log
    invariants.check(log)
    log.close()


def ends(log: EmbeddedLog) -> tuple[int, int]:
    with log.reading() as view:
        stream = view.stream(S)
        assert stream is not None
        return earliest(view, stream), latest(view, stream)


def append(log: EmbeddedLog, count: int) -> None:
    for value in range(count):
        log.run(rows(draft(value % 2, value)))


def test_what_everyone_has_dealt_with_goes_after_its_time(
    log: EmbeddedLog, clock: ManualClock
) -> None:
    collector = Collector(log, clock)
    append(log, 10)
    log.run(Register("group", "g", S, Lsn(0)))
    clock.turn(2_000)
    assert collector.collect().entries == 0, "the group has dealt with nothing"
    log.run(MovePosition("group", "g", (Move(S, Lsn(7)),)))
    assert collector.collect().entries == 7
    assert ends(log) == (7, 10)
    append(log, 2)
    log.run(MovePosition("group", "g", (Move(S, Lsn(12)),)))
    collector.collect()
    assert ends(log) == (10, 12), "the last two are too young"


def test_a_stream_that_nobody_reads_is_kept_for_ever_or_as_it_says(
    log: EmbeddedLog, clock: ManualClock
) -> None:
    collector = Collector(log, clock)
    append(log, 4)
    clock.turn(10_000)
    append(log, 4)
    clock.turn(10_000)
    assert collector.collect().entries == 0
    log.run(AlterStream(S, retention=Retention(age_ms_max=15_000)))
    assert collector.collect().entries == 4
    with log.reading() as view:
        head = view.head(Lsn(5))
        assert head is not None
        size = head.payload_bytes
    log.run(AlterStream(S, retention=Retention(bytes_max=2 * size)))
    collector.collect()
    assert ends(log) == (6, 8)


def test_a_consumer_that_stays_away_is_named_once_and_not_waited_for(
    log: EmbeddedLog, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    collector = Collector(log, clock)
    append(log, 4)
    log.run(Register("group", "slow", S, Lsn(0)))
    log.run(Register("group", "quick", S, Lsn(4)))
    clock.turn(60_001)
    log.run(MovePosition("group", "quick", (Move(S),)))
    with caplog.at_level(logging.WARNING):
        collector.collect()
        collector.collect()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "the group 'slow' at position 0" in said[0]
    assert "60 s" in said[0]
    assert ends(log) == (4, 4)


def test_a_clock_that_jumps_ahead_trims_nothing(log: EmbeddedLog, tmp_path: Path) -> None:
    clock = ManualClock(1_000_000)
    collector = Collector(log, clock)
    append(log, 4)
    log.run(Register("group", "g", S, Lsn(4)))
    clock.wall_error_ms = 10**10
    assert collector.collect().entries == 0
    assert collector.name_those_away() == []


def committed(log: EmbeddedLog, batch: int) -> None:
    (lost,) = log.run(pending(draft(0, batch), by=stamp(batch=batch, attempt=1)))
    (won,) = log.run(pending(draft(0, batch), by=stamp(batch=batch)))
    (file,) = log.run(files(f"offsets/{batch}", batch=batch))
    marker = mark(won, batch=batch, files={f"offsets/{batch}": file}).marker
    log.run(Mark(marker, BatchId(batch - 1) if batch else None))
    assert lost < won


def test_a_query_keeps_what_a_recovery_needs_and_no_more(
    log: EmbeddedLog, clock: ManualClock
) -> None:
    collector = Collector(log, clock)
    log.run(take())
    for batch in range(8):
        committed(log, batch)
    assert collector.collect().entries == 0, "all of it is young"
    clock.turn(2_000)
    collector.collect()
    with log.reading() as view:
        query = view.query(QueryId("q"))
        assert query is not None
        # Copied up to 6, and two markers stay whatever was copied.
        assert query.trimmed == 6
        assert len(list(view.marks(QueryId("q"), BatchId(0)))) == 2
        assert list(view.waiting(QueryId("q"))) == []
        assert len(list(view.tagged("f/q"))) == 2


def test_a_batch_write_is_forgotten_when_it_is_over(log: EmbeddedLog, clock: ManualClock) -> None:
    collector = Collector(log, clock)
    log.run(take())
    (entry,) = log.run(pending(draft(0, 1)))
    marker = mark(entry).marker
    log.run(Mark(type(marker)(marker.query, marker.instance, marker.batch, marker.writes)))
    clock.turn(2_000)
    collector.collect()
    with log.reading() as view:
        assert list(view.queries()) == []
        assert list(view.runs(QueryId("q"))) == []
    assert ends(log)[1] == 3, "what it wrote stays"


def test_what_a_deleted_stream_held_is_swept(log: EmbeddedLog, clock: ManualClock) -> None:
    append(log, 20)
    log.run(DeleteStream(S))
    assert Collector(log, clock).collect().entries >= 20
    with log.reading() as view:
        assert view.txn.stat(view.tables["entries"])["entries"] == 0
    log.run(make())


def test_space_that_was_trimmed_is_used_again(log: EmbeddedLog, clock: ManualClock) -> None:
    """The file does not grow any more once as many rows go as come."""
    collector = Collector(log, clock)
    log.run(AlterStream(S, retention=Retention(age_ms_max=1)))
    data = log.folder.store / "data.mdb"
    sizes = []
    appended = 0
    for _ in range(30):
        for _ in range(8):
            sent = draft(0, *range(2_000))
            log.run(rows(sent))
            appended += len(sent.payload)
        clock.turn(10)
        collector.collect()
        sizes.append(data.stat().st_size)
    assert sizes[-1] <= 2 * sizes[0], sizes
    assert appended > 10 * sizes[-1]


def test_the_thread_collects_by_itself(tmp_path: Path) -> None:
    log = EmbeddedLog.open(tmp_path / "other", Settings(collect_s=1, trim_after_ms=0))
    try:
        log.run(make())
        append(log, 3)
        log.run(Register("group", "g", S, Lsn(3)))
        collector = Collector(log)
        collector.start()
        done = False
        for _ in range(600):
            done = ends(log)[0] == 3
            if done:
                break
            collector._stopping.wait(0.1)
        assert done
        collector.close()
    finally:
        log.close()


def test_closing_waits_for_no_step_that_the_log_does_not_answer(
    log: EmbeddedLog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector, asked = Collector(log, clock), threading.Event()
    append(log, 2)
    log.run(AlterStream(S, retention=Retention(bytes_max=1)))

    def stand_still(_: Operation) -> Future[object]:
        asked.set()
        return unanswered()

    monkeypatch.setattr(log, "submit", stand_still)
    collecting = threading.Thread(target=collector.collect, daemon=True)
    collecting.start()
    assert asked.wait(60)
    collector.close()
    collecting.join(60)
    assert not collecting.is_alive()


def test_a_round_that_fails_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = EmbeddedLog.open(tmp_path / "each-second", Settings(collect_s=1))
    collector, again = Collector(log), threading.Event()
    rounds = [lmdb.ReadersFullError("too many readers")]

    def collect() -> None:
        if rounds:
            raise rounds.pop()
        again.set()

    monkeypatch.setattr(collector, "collect", collect)
    collector.start()
    assert again.wait(60)
    assert "collecting failed, and goes on with what comes next: ReadersFullError" in caplog.text
    collector.close()
    log.close()
