"""A wall clock that jumps by a day, either way, while the log is used: the server's own, or that of
the machine which stamps the messages in JetStream."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import Fenced
from penstock.log import invariants
from penstock.log.address import log_address
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.jetstream import follower
from penstock.log.backends.jetstream.log import JetStreamLog
from penstock.log.backends.jetstream.replay import Delivered
from penstock.log.backends.local import LocalLog
from penstock.log.operations import AlterStream, AppendRows, Move, MovePosition, Register
from penstock.log.reading.visible import earliest, latest, position_at
from penstock.log.retention.collector import Collector
from penstock.log.state import Retention
from penstock.model.ids import Lsn, StreamName
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from penstock.testing.nats_servers import NatsServers
from support.log.drafts import draft, make, mark, pending, rows, stamp, take

DAY_MS = 86_400_000
MINUTE_MS = 60_000
START_MS = 10 * DAY_MS
S = StreamName("s")
NUMBERS = itertools.count()
SETTINGS = Settings(
    trim_after_ms=1_000, consumer_away_ms_max=2 * MINUTE_MS, producer_idle_ms_max=10 * MINUTE_MS
)
JUMPS = pytest.mark.parametrize("jump_ms", [DAY_MS, -DAY_MS], ids=["ahead", "back"])


@pytest.fixture(params=["embedded", "jetstream"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_MS)


@pytest.fixture
def log(
    kind: str,
    tmp_path: Path,
    clock: ManualClock,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[LocalLog]:
    log: LocalLog
    if kind == "embedded":
        log = EmbeddedLog.open(tmp_path / "data", SETTINGS, clock=clock)
    else:

        def stamped(lsn: Lsn, at_ms: int, subject: str, body: bytes) -> Delivered:
            del at_ms
            return Delivered(lsn, clock.wall_ms(), subject, body)

        monkeypatch.setattr(follower, "Delivered", stamped)
        servers: NatsServers = request.getfixturevalue("nats")
        address = log_address(f"{servers.url}/jumps-{next(NUMBERS)}")
        log = JetStreamLog.open(tmp_path / "index", address, SETTINGS, clock.with_real_waits())
    log.run(make())
    yield log
    invariants.check(log)
    log.close()


def append(log: LocalLog, value: int) -> Lsn:
    position: Lsn = log.run(rows(draft(0, value))).position
    return position


def times(log: LocalLog) -> list[int]:
    with log.reading() as view:
        stream = view.stream(S)
        assert stream is not None
        return [each.arrived_at_ms for each in view.commits(stream, 0, latest(view, stream))]


def first(log: LocalLog) -> Lsn:
    with log.reading() as view:
        stream = view.stream(S)
        assert stream is not None
        return earliest(view, stream)


@JUMPS
def test_places_never_go_back_in_time_and_a_time_finds_its_place(
    log: LocalLog, clock: ManualClock, jump_ms: int
) -> None:
    places = []
    for wrong_ms in (0, jump_ms, 0, -jump_ms, jump_ms, 0):
        clock.wall_error_ms = wrong_ms
        clock.turn(1_000)
        places.append(append(log, wrong_ms))
    times_ms = times(log)
    assert times_ms == sorted(times_ms)
    assert times_ms[0] == START_MS + 1_000
    with log.reading() as view:
        stream = view.stream(S)
        assert stream is not None
        for at_ms in times_ms:
            before = [place for place, ms in zip(places, times_ms, strict=True) if ms < at_ms]
            assert position_at(view, stream, at_ms) == max(before, default=0)


def test_rows_under_a_clock_that_jumped_ahead_are_kept_longer_and_none_shorter(
    log: LocalLog, clock: ManualClock
) -> None:
    """
    real minutes   0     1     2        62            1 day and 62
    wall           right ahead right    right         right
    appended       1     2     3
    goes                                1             2 and 3
    """
    log.run(AlterStream(S, retention=Retention(age_ms_max=60 * MINUTE_MS)))
    collector = Collector(log, clock)
    oldest = append(log, 1)
    clock.turn(MINUTE_MS)
    clock.wall_error_ms = DAY_MS
    append(log, 2)
    assert collector.collect().entries == 0, "the first is a minute old, whatever the wall says"
    clock.turn(MINUTE_MS)
    clock.wall_error_ms = 0
    newest = append(log, 3)
    assert collector.collect().entries == 0
    clock.turn(60 * MINUTE_MS)
    collector.collect()
    assert first(log) == oldest
    clock.turn(DAY_MS)
    collector.collect()
    assert first(log) == newest


def test_rows_under_a_clock_that_is_behind_count_from_the_jump(
    log: LocalLog, clock: ManualClock
) -> None:
    """
    real minutes   0      10 to 50   50      61       109     110
    wall           right  behind     right
    appended       1      2 to 6     7
    goes                                     1 to 6           7

    Places do not go back in time, so 2 to 6 carry the time of 1: they go with it, sooner than by
    their own age by as long as the clock was behind.
    """
    log.run(AlterStream(S, retention=Retention(age_ms_max=60 * MINUTE_MS)))
    collector = Collector(log, clock)
    append(log, 1)
    clock.wall_error_ms = -DAY_MS
    for value in range(2, 7):
        clock.turn(10 * MINUTE_MS)
        sixth = append(log, value)
        collector.collect()
    assert set(times(log)) == {START_MS}
    clock.wall_error_ms = 0
    seventh = append(log, 7)
    clock.turn(10 * MINUTE_MS)
    collector.collect()
    assert first(log) == 0, "nothing is an hour old"
    clock.turn(MINUTE_MS)
    collector.collect()
    assert first(log) == sixth
    clock.turn(48 * MINUTE_MS)
    collector.collect()
    assert first(log) == sixth
    clock.turn(2 * MINUTE_MS)
    collector.collect()
    assert first(log) == seventh


@JUMPS
def test_a_consumer_that_is_there_is_not_taken_for_away(
    log: LocalLog, clock: ManualClock, jump_ms: int
) -> None:
    collector = Collector(log, clock)
    log.run(Register("group", "slow", S, Lsn(0)))
    end = append(log, 1)
    clock.wall_error_ms = jump_ms
    for _ in range(10):
        clock.turn(MINUTE_MS)
        log.run(MovePosition("group", "slow", (Move(S),)))
        assert collector.name_those_away() == []
        assert collector.collect().entries == 0
    assert first(log) == 0, "what it has not read is still there"
    clock.wall_error_ms = 0
    log.run(MovePosition("group", "slow", (Move(S, end),)))
    assert collector.name_those_away() == []


def test_a_consumer_that_is_gone_is_named_once_time_has_passed_again(
    log: LocalLog, clock: ManualClock
) -> None:
    collector = Collector(log, clock)
    log.run(Register("group", "gone", S, Lsn(0)))
    append(log, 1)
    clock.wall_error_ms = DAY_MS
    assert collector.name_those_away() == []
    clock.turn(3 * MINUTE_MS)
    assert [each.name for each in collector.name_those_away()] == ["gone"]


@JUMPS
def test_the_fence_counts_instances_and_not_time(
    log: LocalLog, clock: ManualClock, jump_ms: int
) -> None:
    clock.wall_error_ms = jump_ms
    assert log.run(take(run="old")).instance == 1
    clock.wall_error_ms = -jump_ms
    assert log.run(take(run="new")).instance == 2
    (entry,) = log.run(pending(draft(0, 1), by=stamp(instance=2)))
    clock.wall_error_ms = jump_ms
    with pytest.raises(Fenced):
        log.run(pending(draft(0, 1), by=stamp(instance=1)))
    with pytest.raises(Fenced):
        log.run(mark(instance=1))
    assert log.run(mark(entry, instance=2)) > entry


@JUMPS
def test_a_producers_repeat_is_known_across_a_jump(
    log: LocalLog, clock: ManualClock, jump_ms: int
) -> None:
    sent = AppendRows(S, (draft(0, 1),), "p", 1)
    collector = Collector(log, clock)
    position = log.run(sent).position
    log.run(Register("group", "g", S, position))
    clock.turn(5_000)
    clock.wall_error_ms = jump_ms
    second = append(log, 2)
    log.run(MovePosition("group", "g", (Move(S, second),)))
    collector.collect()
    clock.wall_error_ms = 0
    collector.collect()
    assert log.run(sent).duplicate
