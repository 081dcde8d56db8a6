"""An operation that cannot be carried out on any server: refused on all of them, alone, once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest

from penstock.errors import BadCall, PenstockError
from penstock.log import decide as deciding
from penstock.log.backends import outcomes
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.jetstream import codec
from penstock.log.backends.jetstream.codec import Message, token
from penstock.log.backends.jetstream.replay import last_on
from penstock.log.operations import AppendRecord, Mark, Operation, Register
from penstock.log.plan import Plan
from penstock.log.store.apply import Effects
from penstock.log.store.view import StoreView
from penstock.log.view import View
from penstock.model.ids import Lsn, StreamName
from penstock.model.marker import Marker
from support.log.drafts import draft, files, make, mark, rows, take
from support.log.stream_server import PUBLISHER, Server, published

LONG_PATH = f"state/0/0/{'n' * 470}/7.changelog"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "index")
    yield made
    made.applier.close()
    made.env.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    opened = EmbeddedLog.open(tmp_path / "data")
    opened.run(make())
    yield opened
    opened.close()


def with_snapshots(operation: Mark, **positions: int) -> Mark:
    marker = operation.marker
    return Mark(
        Marker(
            marker.query, marker.instance, marker.batch, marker.writes, marker.commit,
            {name: Lsn(position) for name, position in positions.items()}, "append", marker.files,
            (),
        )
    )  # fmt: skip


def test_a_query_whose_name_is_long_once_escaped_is_taken_over_on_a_log_in_jetstream(
    server: Server,
) -> None:
    query = "é" * 100
    assert len(f"t.{token(query)}") > 511
    answers = server.apply(published(take(query), mark(query=query), AppendRecord(("a",), b"x")))
    assert [answers[1].instance, answers[2], answers[3]] == [1, 2, 3]
    with server.env.begin(buffers=True) as txn:
        assert last_on(StoreView(txn, server.tables), f"t.{token(query)}") == 2


def test_a_store_whose_key_is_too_long_is_refused_on_every_server_and_what_follows_is_applied(
    server: Server,
) -> None:
    query = "q" * 200
    named = with_snapshots(mark(query=query, batch=6, files={LONG_PATH: 2}))
    answers = server.apply(
        published(take(query), files(LONG_PATH, query=query, batch=6), named, take(query, "next"))
    )
    assert isinstance(answers[3], BadCall)
    assert "state/0/0/nnn" in answers[3].message
    assert "shorter" in answers[3].message
    assert answers[4].instance == 2


@pytest.mark.parametrize("name", ["x" * 201, "x" * 600, "a\x00b", ""])
def test_a_marker_that_read_what_can_have_no_such_name_is_refused_in_both_logs(
    server: Server, log: EmbeddedLog, name: str
) -> None:
    marked = with_snapshots(mark(), **{name: 0})
    answers = server.apply(published(take(), marked, AppendRecord(("a",), b"x")))
    log.run(take())
    for refusal in (answers[2], log.submit(marked).exception(60)):
        assert isinstance(refusal, BadCall)
        assert "the name of an input is" in refusal.message
    assert answers[3] == 3


@pytest.mark.parametrize("name", ["x" * 600, ""])
def test_what_has_a_name_that_no_key_can_hold_is_not_there_for_an_earlier_version(
    server: Server, name: str
) -> None:
    brought = published(Register("group", "g", StreamName(name), Lsn(0)))
    earlier = [Message(each.subject, bytes([2]) + each.body[1:]) for each in brought]
    refusal = server.apply(earlier)[1]
    assert isinstance(refusal, BadCall)
    assert refusal.code == "unknown_stream"


def test_in_the_embedded_log_the_neighbours_of_a_refused_operation_are_answered(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, opened = threading.Event(), threading.Event()
    decide = deciding.decide

    def gated(operation: Operation, view: View) -> Plan:
        reached.set()
        opened.wait(60)
        return decide(operation, view)

    query = "q" * 200
    log.run(take(query))
    (entry,) = log.run(files(LONG_PATH, query=query, batch=6))
    monkeypatch.setattr(outcomes, "decide", gated)
    first = log.submit(rows(draft(0, 1)))
    reached.wait(60)
    futures: list[Future[Any]] = [
        log.submit(rows(draft(0, 2))),
        log.submit(with_snapshots(mark(query=query, batch=6, files={LONG_PATH: entry}))),
        log.submit(rows(draft(0, 3))),
    ]
    opened.set()
    assert first.result(60).position == 3
    assert futures[0].result(60).position == 4
    assert isinstance(futures[1].exception(60), BadCall)
    assert futures[2].result(60).position == 5


def fails_on(values: set[int], kind: Exception) -> Any:
    """As `Effects.apply`, but for rows with these values, after part of the plan is put."""
    apply = Effects.apply

    def failing(effects: Effects, plan: Plan) -> None:
        apply(effects, plan)
        if any(entry.payload == bytes([value]) for entry in plan.entries for value in values):
            raise kind

    return failing


@pytest.mark.parametrize("kind", [ValueError, lmdb.BadValsizeError, lmdb.KeyExistsError])
def test_a_failure_that_nobody_thought_of_is_one_operations_own_in_both_logs(
    server: Server, log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    """Also one of the store that every server must have: a key that it cannot hold, or has."""
    monkeypatch.setattr(Effects, "apply", fails_on({2}, kind("not thought of")))
    operations = [AppendRecord(("a",), bytes([value])) for value in (1, 2, 3)]
    answers = server.apply(published(*operations))
    assert (answers[1], answers[3]) == (1, 3)
    assert isinstance(answers[2], PenstockError)
    assert f"{kind.__name__}: not thought of" in answers[2].message
    futures = [log.submit(operation) for operation in operations]
    assert isinstance(futures[1].exception(60), PenstockError)
    assert futures[2].result(60) == futures[0].result(60) + 1
    with log.reading() as view:
        assert len(list(view.tagged("a"))) == 2
    with server.env.begin(buffers=True) as txn:
        assert list(StoreView(txn, server.tables).tagged("a")) == [1, 3], "nothing half done"


def test_a_full_map_is_no_refusal_and_is_tried_again_until_there_is_room(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.log.backends.jetstream.applier.RETRY_S", 0.01)
    tries: list[int] = []
    apply = Effects.apply

    def full_twice(effects: Effects, plan: Plan) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise lmdb.MapFullError("mdb_put: MDB_MAP_FULL")
        apply(effects, plan)

    monkeypatch.setattr(Effects, "apply", full_twice)
    assert server.apply(published(AppendRecord(("a",), b"x"))) == {1: 1}
    assert len(tries) == 3


def test_servers_agree_whether_a_poisoned_message_comes_alone_or_in_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Effects, "apply", fails_on({2, 4}, ValueError("not thought of")))
    brought = published(
        make(),
        *(AppendRecord(("a",), bytes([value]), None, "p", None, value) for value in range(6)),
        rows(draft(0, 1), draft(1, 2)),
    )
    grouped, single = Server(tmp_path / "grouped"), Server(tmp_path / "single")
    grouped.apply(brought)
    monkeypatch.setattr("penstock.log.backends.jetstream.applier.MESSAGES_MAX", 1)
    single.apply(brought)
    assert grouped.content() == single.content()
    for each in (grouped, single):
        each.env.close()


@pytest.mark.parametrize(
    "meta",
    [
        (b"short", 1, 0, 1, "AppendRecord", b""),
        (b"x" * 600, 1, 0, 1, "AppendRecord", b""),
        (PUBLISHER, -1, 0, 1, "void", b""),
        (PUBLISHER, 1 << 64, 0, 1, "void", b""),
        (PUBLISHER, 1, 1 << 40, (1 << 40) + 2, "", b""),
        (PUBLISHER, 1, (1 << 62) - 1, 1 << 62, "AppendRecord", b""),
    ],
)
def test_a_message_that_nobody_can_have_published_is_passed_over(
    server: Server, meta: tuple[Any, ...]
) -> None:
    said = msgspec.msgpack.encode(meta) if meta[1] < 1 << 64 else b"\x96"
    forged = Message("t." + "x" * 900, codec._PREFIX.pack(codec.VERSION, len(said)) + said)
    answers = server.apply([forged, *published(AppendRecord(("a",), b"x"))])
    assert answers[1] == 2
