"""One fault of what runs behind ends nothing: callers are answered, and what comes next is done."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from penstock.log.backends.jetstream import log as jetstream_log
from penstock.log.backends.jetstream.applier import Applier
from penstock.log.backends.jetstream.codec import OperationId, messages
from penstock.log.backends.jetstream.connection import ApiError
from penstock.log.backends.jetstream.log import JetStreamLog
from penstock.log.backends.jetstream.replay import open_operation
from penstock.log.backends.local import LocalLog
from penstock.log.operations import AppendRecord, TrimTag
from penstock.model.ids import Lsn
from penstock.testing.nats_servers import NatsServers
from support.log.backends import JetStreamBackend
from support.log.drafts import draft, make, rows, take
from support.servers.processes import wait_until

Call = Callable[..., Any]
_numbers = itertools.count()


def once(work: Call, error: Exception) -> Call:
    """The first call fails, the others do their work."""
    left = [error]

    def call(*args: Any, **named: Any) -> Any:
        if left:
            raise left.pop()
        return work(*args, **named)

    return call


@pytest.fixture
def servers(nats: NatsServers, tmp_path: Path) -> Iterator[JetStreamBackend]:
    backend = JetStreamBackend(tmp_path, nats.url, f"behind-{next(_numbers)}")
    yield backend
    backend.close()


@pytest.fixture
def log(servers: JetStreamBackend) -> JetStreamLog:
    first_log = servers.clients[0]
    assert isinstance(first_log, JetStreamLog)
    return first_log


def works(log: LocalLog) -> bool:
    return bool(log.submit(AppendRecord(("a",), b"x")).result(60))


def test_a_reader_that_cannot_be_told_holds_up_no_answer(
    first_log: LocalLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[object] = []
    first_log.on_visible(once(heard.append, RuntimeError("its loop is closed")))
    first_log.run(make())
    # As when the store has as many readers as it can.
    monkeypatch.setattr(
        first_log, "reading", once(first_log.reading, lmdb.ReadersFullError("too many"))
    )
    for value in range(2):
        assert first_log.submit(rows(draft(0, value))).result(60).position
    assert heard == [{"s"}]
    assert "telling of rows that are visible failed" in caplog.text


def test_a_half_published_operation_is_taken_back_though_that_failed_at_first(
    servers: JetStreamBackend, log: JetStreamLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream_log, "OPEN_S_MAX", 0.1)
    monkeypatch.setattr(jetstream_log, "WATCH_S", 0.05)
    log.run(make())
    for each in servers.clients:
        failing = once(each.reading, lmdb.ReadersFullError("too many"))
        monkeypatch.setattr(each, "reading", failing)
    first, _ = messages(OperationId(b"deadserv", 1), rows(draft(0, 1), draft(1, 2)))
    connection = log._connection
    subject = f"{connection.address.name}.{first.subject}"
    connection.call(connection.client.publish(subject, first.body))

    def is_taken_back() -> bool:
        with LocalLog.reading(log) as view:
            return view.next_lsn > 2 and open_operation(view) is None

    wait_until("it is taken back", is_taken_back)


def test_an_operation_that_could_not_be_published_at_first_is_published_again(
    log: JetStreamLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = log._publisher
    failing = once(publisher._reading, lmdb.ReadersFullError("too many"))
    monkeypatch.setattr(publisher, "_reading", failing)
    assert log.submit(take()).result(60).instance == 1
    assert works(log)


def test_what_is_done_after_applying_fails_and_the_next_is_applied(
    log: JetStreamLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    lsn = log.run(AppendRecord(("a",), b"x"))
    monkeypatch.setattr(log, "_keep", once(log._keep, RuntimeError("no thread can be started")))
    log.run(TrimTag("a", lsn))
    assert works(log)


@pytest.mark.parametrize("part", ["_fill", "_check_places"])
def test_messages_that_could_not_be_applied_at_first_are_applied_then(
    servers: JetStreamBackend, log: JetStreamLog, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    lsns = [log.run(AppendRecord(("a",), b"x")) for _ in range(3)]
    log.run(TrimTag("a", Lsn(lsns[1])))
    servers.purge(0)
    failing = once(getattr(Applier, part), ApiError(503, 0, "no server of it answers"))
    monkeypatch.setattr(Applier, part, failing)
    rebuilding = threading.Thread(target=servers.rebuild, args=(1,), daemon=True)
    rebuilding.start()
    rebuilding.join(120)
    assert not rebuilding.is_alive()
    assert works(servers.clients[1])
    servers.check()
