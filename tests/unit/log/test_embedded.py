"""The embedded log: shared syncs, bounds, reopening, and the folder it lives in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import lmdb
import pytest

from penstock.errors import BadCall, Damaged, PenstockError, TryAgain
from penstock.log import decide as deciding
from penstock.log import invariants
from penstock.log.backends import outcomes
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import Operation
from penstock.log.plan import Plan
from penstock.log.reading.visible import Range, entries_in, page
from penstock.log.store import folder
from penstock.log.view import View
from penstock.model.ids import Lsn, StreamName
from penstock.settings.server import Settings
from support.log.drafts import draft, make, mark, pending, rows, take, values_of


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog.open(tmp_path / "data")
    log.run(make())
    yield log
    log.close()


class Gate:
    """Holds the writer inside its first decision, so that what comes meanwhile queues up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        decide = deciding.decide

        def gated(operation: Operation, view: View) -> Plan:
            self.reached.set()
            self.opened.wait(60)
            return decide(operation, view)

        monkeypatch.setattr(outcomes, "decide", gated)


def test_operations_that_queue_up_share_a_sync(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    before = log.commits
    first = log.submit(rows(draft(0, 0)))
    gate.reached.wait(60)
    others = [log.submit(rows(draft(0, key))) for key in range(1, 51)]
    gate.opened.set()
    positions = [future.result(60).position for future in (first, *others)]
    assert positions == sorted(positions)
    assert log.commits - before == 2
    invariants.check(log)


def test_a_refused_operation_leaves_no_trace_and_its_neighbours_commit(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    first = log.submit(rows(draft(0, 1)))
    gate.reached.wait(60)
    futures: list[Future[Any]] = [
        log.submit(rows(draft(0, 2))),
        log.submit(rows(draft(0, 3), stream="nowhere")),
        log.submit(mark(batch=0)),
        log.submit(rows(draft(0, 4))),
    ]
    gate.opened.set()
    assert first.result(60).position == 1
    assert futures[0].result(60).position == 2
    assert isinstance(futures[1].exception(60), BadCall)
    assert isinstance(futures[2].exception(60), BadCall)
    assert futures[3].result(60).position == 3
    invariants.check(log)


def test_the_queue_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = EmbeddedLog.open(tmp_path / "data", Settings(queue_max=2))
    log.run(make())
    gate = Gate(monkeypatch)
    kept = [log.submit(rows(draft(0, 1)))]
    gate.reached.wait(60)
    kept += [log.submit(rows(draft(0, key))) for key in (2, 3)]
    with pytest.raises(TryAgain, match="which is the bound; try again") as caught:
        log.submit(rows(draft(0, 4)))
    assert caught.value.code == "busy"
    gate.opened.set()
    assert [future.result(60).position for future in kept] == [1, 2, 3]
    log.close()
    with pytest.raises(TryAgain, match="stopping"):
        log.submit(rows(draft(0, 5)))


def test_what_is_queued_is_written_before_the_log_closes(tmp_path: Path) -> None:
    log = EmbeddedLog.open(tmp_path / "data")
    futures = [log.submit(make()), *(log.submit(rows(draft(0, key))) for key in range(20))]
    log.close()
    assert [future.result(0).position for future in futures[1:]] == list(range(1, 21))


def test_a_commit_that_fails_keeps_nothing_and_the_next_one_works(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:

        def no_room(*_: object) -> None:
            raise lmdb.Error("mdb_txn_commit: No space left on device")

        broken.setattr("penstock.log.store.apply.Effects.apply", no_room)
        with pytest.raises(TryAgain, match=r"bytes free on its disk.*No space left") as caught:
            log.run(rows(draft(0, 1)))
        assert (caught.value.code, caught.value.http_status) == ("storage_full", 507)
    assert log.run(rows(draft(0, 2))).position == 1


def test_a_fault_of_our_own_in_a_decision_spares_the_others(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:

        def fails(*_: object) -> Plan:
            raise ZeroDivisionError("oh")

        broken.setattr(outcomes, "decide", fails)
        with pytest.raises(PenstockError, match="deciding failed: ZeroDivisionError") as caught:
            log.run(rows(draft(0, 1)))
        assert caught.value.act == "report this"
    assert log.run(rows(draft(0, 2))).position == 1


def test_listeners_hear_of_streams_that_show_something_new(log: EmbeddedLog) -> None:
    heard: list[frozenset[StreamName]] = []
    log.on_visible(heard.append)
    log.run(take())
    log.run(pending(draft(0, 1)))
    assert heard == []
    log.run(mark(2))
    assert heard == [frozenset({"s"})]


def test_a_page_has_at_least_one_entry_and_at_most_about_what_was_asked(log: EmbeddedLog) -> None:
    for key in range(5):
        log.run(rows(draft(0, key)))
    with log.reading() as view:
        stream = view.stream(StreamName("s"))
        assert stream is not None
        asked = Range(stream, Lsn(0), Lsn(5))
        size = len(view.payload(Lsn(1)))
        payloads, cursor = page(view, asked, 1, 100)
        assert [values_of(bytes(each.payload)) for each in payloads] == [[0]]
        assert str(cursor) == "2:0"
        assert len(page(view, asked, 3 * size, 100)[0]) == 3
        assert len(page(view, asked, 1 << 20, 2)[0]) == 2
        assert page(view, asked, 1 << 20, 100)[1] is None
        assert [lsn for _, lsn in entries_in(view, asked)] == [1, 2, 3, 4, 5]


def test_places_go_on_after_reopening(tmp_path: Path) -> None:
    for expected in (1, 2, 3):
        log = EmbeddedLog.open(tmp_path / "data")
        log.run(make())
        assert log.run(rows(draft(0, expected))).position == expected
        invariants.check(log)
        log.close()


def test_a_folder_is_used_by_one_log_at_a_time(tmp_path: Path) -> None:
    log = EmbeddedLog.open(tmp_path / "data")
    with pytest.raises(BadCall, match="in use by the server with pid"):
        EmbeddedLog.open(tmp_path / "data")
    log.close()
    EmbeddedLog.open(tmp_path / "data").close()


def test_pages_missing_by_right_are_told_from_pages_in_use(tmp_path: Path) -> None:
    """A file short of pages nobody uses is made whole; one short of pages in use is refused."""
    log = EmbeddedLog.open(tmp_path / "data")
    log.run(make())
    log.run(rows(draft(0, *range(10_000))))
    log.close()
    data = tmp_path / "data" / "log" / "data.mdb"
    whole = data.read_bytes()
    assert folder.missing_bytes(data) == 0
    grown = (len(whole) // 4096 + 3).to_bytes(8, "little")
    for at in (136, 4096 + 136):
        whole = whole[:at] + grown + whole[at + 8 :]
    data.write_bytes(whole)
    assert folder.missing_bytes(data) > 0
    folder.check_whole(data)
    assert folder.missing_bytes(data) == 0
    data.write_bytes(whole[: len(whole) - 40_000])
    with pytest.raises(Damaged, match="has been cut short; restore"):
        folder.check_whole(data)
