"""A subscription that is read while it is being told of what was committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.errors import BadCall, Damaged
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import AppendRecord, TrimTag
from penstock.log.reading.subscription import Subscriptions
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn

LateNotices = Callable[[], None]


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> LateNotices:
    """Holds back what subscriptions are told, until it is called."""
    held: list[tuple[Subscriptions, tuple[str, ...], Lsn]] = []
    tell = Subscriptions.notify

    def hold(self: Subscriptions, tags: Iterable[str], last: Lsn) -> None:
        held.append((self, tuple(tags), last))

    def release() -> None:
        for subscriptions, tags, last in held:
            tell(subscriptions, tags, last)
        held.clear()

    monkeypatch.setattr(Subscriptions, "notify", hold)
    return release


def test_an_earlier_entry_of_another_tag_is_not_passed_over(
    tmp_path: Path, late: LateNotices
) -> None:
    # The reader is woken for b by an older entry, and finds a newer one of b before it has been
    # told of the one of a that stands between them.
    #   place   1  2  3
    #   tag     b  a  b
    log = EmbeddedLog.open(tmp_path)
    with log.subscribe(["a", "b"]) as reader:
        assert reader.next(0) == []
        log.run(AppendRecord(("b",), b"1"))
        late()
        log.run(AppendRecord(("a",), b"2"))
        log.run(AppendRecord(("b",), b"3"))
        assert [entry.payload for entry in reader.next(0)] == [b"1", b"2", b"3"]
        late()
        assert reader.next(0) == []
    log.close()


def test_an_entry_that_comes_while_the_log_is_being_read_is_given_out_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = EmbeddedLog.open(tmp_path)
    with log.subscribe(["a"]) as reader:
        still = reader._reading

        @contextmanager
        def behind() -> Iterator[StoreView]:
            with still() as view:
                log.run(AppendRecord(("a",), b"1"))
                # By the answer to this the reader was told of the first.
                log.run(AppendRecord(("b",), b"2"))
                yield view

        monkeypatch.setattr(reader, "_reading", behind)
        assert reader.next(0) == []
        monkeypatch.setattr(reader, "_reading", still)
        assert [entry.payload for entry in reader.next(0)] == [b"1"]
    log.close()


def test_what_is_told_one_by_one_is_given_out_once(tmp_path: Path, late: LateNotices) -> None:
    log = EmbeddedLog.open(tmp_path)
    with log.subscribe(["a", "b"]) as reader:
        given = []
        for number, tag in enumerate("abba"):
            log.run(AppendRecord((tag,), b"%d" % number))
            late()
            given += [entry.payload for entry in reader.next(1)]
    assert given == [b"0", b"1", b"2", b"3"]
    log.close()


def test_a_reader_that_waits_is_let_go_when_its_subscription_is_closed(tmp_path: Path) -> None:
    log = EmbeddedLog.open(tmp_path)
    reader = log.subscribe(["a"])
    batches: list[object] = []
    waiting = threading.Thread(target=lambda: batches.append(reader.next(600)))
    waiting.start()
    reader.close()
    waiting.join(60)
    assert batches == [[]]
    log.close()


def test_a_subscription_of_several_tags_is_told_of_a_trim_until_it_starts_elsewhere(
    tmp_path: Path,
) -> None:
    log = EmbeddedLog.open(tmp_path)
    with log.subscribe(["a", "b"]) as reader:
        assert reader.next(0) == []
        gone = log.run(AppendRecord(("a",), b"1"))
        log.run(TrimTag("a", gone))
        for _ in range(2):
            with pytest.raises(BadCall, match="the tag 'a' is trimmed"):
                reader.next(0)
        log.run(AppendRecord(("b",), b"2"))
        with pytest.raises(BadCall, match="the tag 'a' is trimmed"):
            reader.next(0)
        assert reader.after == 0
    log.close()


def test_what_was_read_before_an_entry_that_is_damaged_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = EmbeddedLog.open(tmp_path)
    for number in range(3):
        log.run(AppendRecord(("a",), b"%d" % number))
    whole = StoreView.entry

    def damaged(self: StoreView, lsn: Lsn) -> object:
        if lsn == 3:
            raise Damaged("entry 3 is damaged", code="damaged")
        return whole(self, lsn)

    with log.subscribe(["a"]) as reader:
        monkeypatch.setattr(StoreView, "entry", damaged)
        for _ in range(2):
            with pytest.raises(Damaged):
                reader.next(0)
        monkeypatch.setattr(StoreView, "entry", whole)
        assert [entry.payload for entry in reader.next(0)] == [b"0", b"1", b"2"]
    log.close()


def test_a_subscription_that_is_closed_reads_no_more(tmp_path: Path) -> None:
    log = EmbeddedLog.open(tmp_path)
    reader = log.subscribe(["a"])
    log.run(AppendRecord(("a",), b"1"))
    reader.close()
    log.close()
    assert reader.next(0) == []


def test_a_reader_that_does_not_wait_is_called_once_until_it_reads(tmp_path: Path) -> None:
    log, calls = EmbeddedLog.open(tmp_path), list[int]()
    with log.subscribe(["a", "b"], on_news=lambda: calls.append(len(calls))) as reader:
        # What is there already is not told of.
        assert reader.next(0) == []
        assert not reader.has_news
        for payload in (b"1", b"2"):
            log.run(AppendRecord(("a", "b"), payload))
        log.run(AppendRecord(("c",), b"3"))
        assert calls == [0]
        assert [entry.payload for entry in reader.next(0)] == [b"1", b"2"]
        log.run(AppendRecord(("b",), b"4"))
        assert calls == [0, 1]
    log.close()
