"""The duplicate filter: it forgets by time, and says so when it cannot remember one more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest

from penstock.errors import TryAgain
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.jetstream.codec import Message, OperationId, messages
from penstock.log.backends.jetstream.replay import Delivered, Replay
from penstock.log.operations import AppendRecord, Operation
from penstock.log.rules import Rules
from penstock.log.store.layout import TABLES, Tables
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from support.log.drafts import draft, make, rows

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
SETTINGS = Settings(producers_max=3, producer_kept_ms_min=HOUR_MS)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(wall_ms=1_700_000_000_000)


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Iterator[EmbeddedLog]:
    opened = EmbeddedLog.open(tmp_path / "data", SETTINGS, clock)
    opened.run(make())
    yield opened
    opened.close()


def row(producer: str, sequence: int = 0) -> Operation:
    return rows(draft(0, 1), producer=producer, sequence=sequence)


def record(producer: str, sequence: int = 0) -> Operation:
    return AppendRecord(("a",), b"x", None, producer, None, sequence)


KINDS = pytest.mark.parametrize("append", [row, record])
Append = Callable[..., Operation]


def is_repeat(log: EmbeddedLog, operation: Operation) -> bool:
    with log.reading() as view:
        before = view.next_lsn
    log.run(operation)
    with log.reading() as view:
        return view.next_lsn == before


def fill(log: EmbeddedLog, append: Append, *producers: str) -> None:
    for producer in producers:
        log.run(append(producer))


@KINDS
def test_short_lived_producers_do_not_push_out_a_slow_one(log: EmbeddedLog, append: Append) -> None:
    fill(log, append, "slow", "one", "two")
    with pytest.raises(TryAgain, match="have appended within the last 3600 s") as caught:
        log.run(append("three"))
    assert (caught.value.code, caught.value.http_status) == ("producers_at_bound", 503)
    assert "raise producers_max" in caught.value.message
    assert is_repeat(log, append("slow")), "it sends again what it was not answered"
    assert not is_repeat(log, append("slow", 1))
    invariants.check(log)


@KINDS
def test_who_has_been_silent_for_long_enough_makes_room_the_longest_first(
    log: EmbeddedLog, clock: ManualClock, append: Append
) -> None:
    fill(log, append, "slow", "silent")
    clock.turn(30 * MINUTE_MS)
    log.run(append("slow", 1))
    fill(log, append, "third")
    clock.turn(31 * MINUTE_MS)
    log.run(append("fourth"))
    assert is_repeat(log, append("slow", 1))
    assert is_repeat(log, append("third"))
    with pytest.raises(TryAgain, match="try again"):
        log.run(append("silent"))
    clock.turn(31 * MINUTE_MS)
    assert not is_repeat(log, append("silent")), "it was forgotten"
    invariants.check(log)


@KINDS
def test_a_clock_that_jumps_makes_nobody_silent_and_none_that_goes_back_for_ever(
    clock: ManualClock, append: Append, tmp_path: Path
) -> None:
    log = EmbeddedLog.open(tmp_path / "data", SETTINGS, clock)
    log.run(make())
    fill(log, append, "slow", "one", "two")
    clock.wall_error_ms = 365 * 24 * HOUR_MS
    with pytest.raises(TryAgain, match="producers"):
        log.run(append("three"))
    clock.wall_error_ms = 0
    log.close()
    clock.wall_error_ms = 365 * 24 * HOUR_MS
    again = EmbeddedLog.open(tmp_path / "data", SETTINGS, clock)
    with pytest.raises(TryAgain, match="producers"):
        again.run(append("three"))
    clock.wall_error_ms = 0
    clock.turn(HOUR_MS)
    again.run(append("three"))
    again.close()


def test_appends_without_a_producer_are_never_refused_for_it(log: EmbeddedLog) -> None:
    fill(log, row, "a", "b", "c")
    assert log.run(rows(draft(0, 1))).rows == 1


class Stream:
    """Servers that apply the same messages, each at its time."""

    def __init__(self, folder: Path) -> None:
        self.env = lmdb.open(str(folder), max_dbs=len(TABLES), map_size=1 << 26, sync=False)
        self.tables = Tables(self.env)
        self.rules = Rules(producers_max=2, producer_kept_ms_min=HOUR_MS)
        self.last = 0

    def put(self, message: Message, at_ms: int) -> object:
        self.last += 1
        with self.env.begin(write=True, buffers=True) as txn:
            replay = Replay(txn, self.tables, self.rules)
            outcome = replay.apply(Delivered(Lsn(self.last), at_ms, message.subject, message.body))
        return None if outcome is None else outcome.answer

    def producers(self) -> set[str]:
        with self.env.begin(buffers=True) as txn:
            view = StoreView(txn, self.tables)
            return {each for each in "abcdef" if view.last_recorded(each) is not None}


def test_by_the_time_of_messages_a_producer_is_kept_and_earlier_messages_are_as_they_were(
    tmp_path: Path,
) -> None:
    stream = Stream(tmp_path)
    numbers = iter(range(1, 100))

    def put(producer: str, at_ms: int, version: int = 3) -> object:
        id = OperationId(b"publish1", next(numbers))
        (message,) = messages(id, record(producer))
        return stream.put(Message(message.subject, bytes([version]) + message.body[1:]), at_ms)

    for at_ms, producer in enumerate("abc"):
        assert put(producer, at_ms, version=2) == at_ms + 1, "above the bound the oldest went"
    assert stream.producers() == {"b", "c"}
    assert isinstance(put("d", 10), TryAgain)
    jumped = 1_000 * HOUR_MS
    assert isinstance(put("d", jumped), TryAgain), "a jump is no time that has passed"
    at_ms, tries = 10, 0
    while isinstance(answer := put("d", at_ms), TryAgain):
        at_ms, tries = at_ms + 15 * MINUTE_MS, tries + 1
    assert 4 <= tries <= 5, "an hour, by what passes between messages"
    assert isinstance(answer, int)
    assert stream.producers() == {"c", "d"}
    stream.env.close()
