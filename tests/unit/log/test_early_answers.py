"""Answers before the sync: what they promise, what a crash leaves, which markers are refused."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import lmdb
import pytest

from penstock.clock import SYSTEM_CLOCK
from penstock.errors import BadCall, Fenced
from penstock.log import invariants
from penstock.log.backends.embedded.early_answers import EarlyAnswers
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.outcomes import Given, News
from penstock.log.operations import Operation
from penstock.log.rules import Rules
from penstock.log.store.layout import TABLES, Tables
from penstock.log.store.start_tables import STARTS_KEPT
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn
from penstock.settings.server import Settings
from support.log.drafts import draft, files, make, mark, pending, rows, stamp, take
from support.log.state import State

STATE = "state/0/0/1.changelog"
# Long enough that nothing is synced by itself while a test looks.
WAITS = Settings(unsynced_ms_max=10_000)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., EmbeddedLog]]:
    """Opens a log in a folder of the test's; it has a stream and a query."""
    logs: list[EmbeddedLog] = []

    def open_log(folder: str = "data", settings: Settings = WAITS) -> EmbeddedLog:
        log = EmbeddedLog.open(tmp_path / folder, settings)
        logs.append(log)
        log.run(make())
        log.run(take())
        return log

    yield open_log
    for log in logs:
        log.close()


@pytest.fixture
def log(opened: Callable[..., EmbeddedLog]) -> EmbeddedLog:
    return opened()


def early(log: EmbeddedLog, *operations: Operation) -> list[Given]:
    return [future.result(60) for future in log.submit_early(operations)]


def place(given: Given) -> int:
    (lsn,) = given.answer
    return int(lsn)


def start_of(given: Given) -> int:
    assert given.start is not None
    return given.start


def is_there(log: EmbeddedLog, lsn: int) -> bool:
    with log.reading() as view:
        return view.head(Lsn(lsn)) is not None


def code_of(log: EmbeddedLog, operation: Operation) -> str:
    with pytest.raises(BadCall) as refused:
        log.run(operation)
    return refused.value.code


def as_after_a_crash(log: EmbeddedLog, tmp_path: Path) -> str:
    """A folder with what a kill would leave now: what is synced, and nothing else."""
    shutil.copytree(log.folder.path, tmp_path / "after")
    return "after"


def test_an_append_is_answered_before_its_sync_and_the_markers_covers_it(log: EmbeddedLog) -> None:
    before = log.commits
    given, state = early(log, pending(draft(0, 1)), files(STATE))
    assert given.start == state.start is not None
    assert log.commits == before
    assert not is_there(log, place(given))
    (later,) = early(log, pending(draft(1, 2)))
    assert log.commits == before
    last = max(place(state), place(later))
    entries = (place(given), place(later))
    log.run(mark(*entries, files={STATE: place(state)}, starts={start_of(given): last}))
    assert log.commits == before + 1
    assert is_there(log, place(given))
    invariants.check(log)


def test_what_nothing_follows_is_synced_after_a_while(opened: Callable[..., EmbeddedLog]) -> None:
    log = opened(settings=Settings(unsynced_ms_max=30))
    (given,) = early(log, pending(draft(0, 1)))
    end = time.monotonic() + 60
    while not is_there(log, place(given)):
        assert time.monotonic() < end
        time.sleep(0.005)
    invariants.check(log)


def test_what_was_answered_is_synced_before_the_log_closes(
    opened: Callable[..., EmbeddedLog], tmp_path: Path
) -> None:
    log = EmbeddedLog.open(tmp_path / "data", WAITS)
    log.run(make())
    log.run(take())
    (given,) = early(log, pending(draft(0, 1)))
    log.close()
    again = opened()
    assert is_there(again, place(given))
    again.run(mark(place(given), starts={start_of(given): place(given)}))


def test_another_caller_brings_the_sync(log: EmbeddedLog) -> None:
    before = log.commits
    (given,) = early(log, pending(draft(0, 1)))
    log.run(rows(draft(0, 7)))
    assert log.commits == before + 1
    assert is_there(log, place(given))


def test_who_reads_by_tag_is_told_with_the_sync_and_not_before(log: EmbeddedLog) -> None:
    news = threading.Event()
    with log.subscribe(["s/s/0"], on_news=news.set) as reader:
        assert reader.next(0) == []
        early(log, pending(draft(0, 1)))
        assert reader.next(0) == []
        assert not news.is_set()
        log.run(rows(draft(1, 7)))
        assert news.wait(60)
        assert len(reader.next(60)) == 1


def test_a_marker_of_places_that_a_crash_took_is_refused(
    opened: Callable[..., EmbeddedLog], log: EmbeddedLog, tmp_path: Path
) -> None:
    (state,) = early(log, files(STATE))
    restarted = opened(as_after_a_crash(log, tmp_path))
    assert not is_there(restarted, place(state))
    # Another attempt at the task writes a file of the same name, and is given the same place.
    (other,) = early(restarted, files(STATE))
    assert place(other) == place(state)
    assert other.start != state.start
    refused = mark(files={STATE: place(state)}, starts={start_of(state): place(state)})
    assert code_of(restarted, refused) == "other_start"
    restarted.run(mark(files={STATE: place(other)}, starts={start_of(other): place(other)}))
    invariants.check(restarted)


def test_a_marker_of_places_that_were_synced_before_a_crash_is_taken(
    opened: Callable[..., EmbeddedLog], log: EmbeddedLog, tmp_path: Path
) -> None:
    (given,) = early(log, pending(draft(0, 1)))
    log.run(rows(draft(0, 7)))
    (lost,) = early(log, pending(draft(0, 2)))
    restarted = opened(as_after_a_crash(log, tmp_path))
    both = mark(place(given), place(lost), starts={start_of(given): place(lost)})
    assert code_of(restarted, both) == "other_start"
    restarted.run(mark(place(given), starts={start_of(given): place(given)}))


def test_a_marker_that_was_taken_is_answered_again_whatever_start_there_is(
    opened: Callable[..., EmbeddedLog], log: EmbeddedLog, tmp_path: Path
) -> None:
    (given,) = early(log, pending(draft(0, 1)))
    marker = mark(place(given), starts={start_of(given): place(given)})
    lsn = log.run(marker)
    restarted = opened(as_after_a_crash(log, tmp_path))
    assert restarted.run(marker) == lsn


@pytest.mark.parametrize("operation", [files("offsets/0"), rows(draft(0, 1)), take(run="r2")])
def test_what_counts_by_itself_is_never_answered_early(
    log: EmbeddedLog, operation: Operation
) -> None:
    before = log.commits
    (given,) = early(log, operation)
    assert given.start is None
    assert log.commits == before + 1


def test_a_refusal_is_told_after_the_sync_of_what_it_may_rest_on(log: EmbeddedLog) -> None:
    (given,) = early(log, pending(draft(0, 1)))
    before = log.commits
    late = log.submit_early([pending(draft(0, 2), by=stamp(instance=9))])
    with pytest.raises(Fenced):
        late[0].result(60)
    assert log.commits == before + 1
    assert is_there(log, place(given))


def test_a_fault_in_one_append_takes_nothing_with_it_that_was_answered(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    (given,) = early(log, pending(draft(0, 1)))
    with monkeypatch.context() as broken:

        def fails(*_: object) -> None:
            raise ZeroDivisionError("oh")

        broken.setattr("penstock.log.store.apply.Effects.apply", fails)
        with pytest.raises(Exception, match="applying failed: ZeroDivisionError"):
            early(log, pending(draft(0, 2)))
    assert is_there(log, place(given))
    log.run(mark(place(given), starts={start_of(given): place(given)}))
    invariants.check(log)


@pytest.mark.parametrize("bound", [{"group_max": 2}, {"group_bytes_max": 1_024}])
def test_no_more_waits_for_a_sync_than_shares_one(
    opened: Callable[..., EmbeddedLog], bound: dict[str, int]
) -> None:
    log = opened(settings=Settings(unsynced_ms_max=10_000, **bound))
    starts = [early(log, pending(draft(0, *range(30))))[0].start for _ in range(6)]
    assert None in starts
    assert any(start is not None for start in starts)


def test_where_the_setting_is_zero_nothing_is_answered_early(
    opened: Callable[..., EmbeddedLog],
) -> None:
    log = opened(settings=Settings(unsynced_ms_max=0))
    (given,) = early(log, pending(draft(0, 1)))
    assert given.start is None
    assert is_there(log, place(given))


def test_a_sync_that_fails_begins_another_start(tmp_path: Path) -> None:
    env = lmdb.open(str(tmp_path), map_size=1 << 20, max_dbs=len(TABLES))
    tables = Tables(env)
    answers = EarlyAnswers(env, tables, WAITS, SYSTEM_CLOCK)
    first = answers.start
    assert answers.applied(lambda txn, news: ["done"], [1]) == ["done"]
    unsynced = answers._unsynced
    assert unsynced is not None
    unsynced.txn = cast("lmdb.Transaction", FullDisk(unsynced.txn))
    with pytest.raises(lmdb.DiskError):
        answers.commit()
    assert answers.start != first
    assert answers.txn is None
    with env.begin() as txn:
        assert StoreView(txn, tables).starts == []
    env.close()


class FullDisk:
    """A transaction that cannot be committed."""

    def __init__(self, txn: Any) -> None:
        self._txn = txn

    def commit(self) -> None:
        raise lmdb.DiskError("no space left on device")

    def abort(self) -> None:
        self._txn.abort()


def test_a_group_that_is_refused_or_fails_leaves_no_open_transaction(tmp_path: Path) -> None:
    env = lmdb.open(str(tmp_path), map_size=1 << 20, max_dbs=len(TABLES))
    answers = EarlyAnswers(env, Tables(env), WAITS, SYSTEM_CLOCK)
    assert answers.applied(lambda txn, news: [BadCall("no", code="bad_request")], [1]) is None

    def fails(txn: lmdb.Transaction, news: News) -> list[Any]:
        raise ZeroDivisionError("oh")

    with pytest.raises(ZeroDivisionError):
        answers.applied(fails, [1])
    assert answers.txn is None
    with env.begin(write=True):
        pass
    env.close()


def test_only_so_many_starts_are_remembered(tmp_path: Path) -> None:
    env = lmdb.open(str(tmp_path), map_size=1 << 20, max_dbs=len(TABLES))
    tables = Tables(env)
    with env.begin(write=True, buffers=True) as txn:
        view = StoreView(txn, tables)
        for start in range(STARTS_KEPT + 3):
            view.put_given(start)
        assert [start for start, _ in view.starts] == list(range(3, STARTS_KEPT + 3))
        assert view.given_below(2) == 0
        assert view.given_below(3) == 1
    env.close()


def test_a_marker_is_decided_by_what_the_log_has_of_the_start() -> None:
    state = State()
    state.do(make())
    state.do(take())
    (lsn,) = state.do(pending(draft(0, 1))).answer
    marker = mark(lsn, starts={5: lsn})
    assert refusal_of(state, marker) == "other_start"
    state.given[5] = Lsn(lsn)
    assert refusal_of(state, marker) == "other_start"
    state.given[5] = Lsn(lsn + 1)
    state.do(marker)


def test_a_marker_of_an_earlier_version_is_decided_as_then() -> None:
    state = State(rules=Rules(version=5))
    state.do(make())
    state.do(take())
    (lsn,) = state.do(pending(draft(0, 1))).answer
    state.do(mark(lsn, starts={5: lsn}))


def refusal_of(state: State, operation: Operation) -> str:
    with pytest.raises(BadCall) as refused:
        state.do(operation)
    return refused.value.code
