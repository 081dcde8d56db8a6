"""A stream of an earlier version and servers of this one; both at once refuse each other."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.errors import BadCall, TryAgain
from penstock.log.address import log_address
from penstock.log.backends.jetstream import codec
from penstock.log.backends.jetstream.codec import OperationId, messages
from penstock.log.backends.jetstream.log import JetStreamLog
from penstock.log.backends.jetstream.replay import log_version
from penstock.log.backends.local import LocalLog
from penstock.log.operations import AppendRecord, Mark, Operation
from penstock.model.ids import Instance, Lsn
from penstock.testing.nats_servers import NatsServers
from support.log.backends import content, wait_for
from support.log.drafts import draft, files, make, mark, rows, take

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "protocol.json").read_text("utf-8")
)
OLD_SERVER = b"version1"


@pytest.fixture
def opened(
    nats: NatsServers, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], JetStreamLog]]:
    """Opens a server on a folder by name; the test has a stream to itself."""
    name = request.node.name[-60:].replace("[", "-").replace("]", "")
    address = log_address(f"{nats.url}/{name}")
    servers: list[JetStreamLog] = []

    def open_server(folder: str) -> JetStreamLog:
        servers.append(JetStreamLog.open(tmp_path / folder, address))
        return servers[-1]

    yield open_server
    for server in servers:
        if not server._publisher.bounds._closed:
            server.close()


def publish_as_version_1(log: JetStreamLog, number: int, operation: Operation) -> None:
    publish_as(1, log, number, operation)


def publish_as(version: int, log: JetStreamLog, number: int, operation: Operation) -> None:
    for message in messages(OperationId(OLD_SERVER, number), operation):
        _publish(log, message.subject, bytes([version]) + message.body[1:])


def _publish(log: JetStreamLog, subject: str, body: bytes) -> None:
    connection = log._connection
    sent = connection.client.request(f"{connection.address.name}.{subject}", body, timeout=10)
    connection.call(sent)


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def version(log: LocalLog) -> int:
    with log.reading() as view:
        return log_version(view)


def test_a_stream_of_version_1_with_retired_operations_opens_and_is_raised(
    opened: Callable[[str], JetStreamLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(JetStreamLog, "_announce_version", _nothing)
        first = opened("first")
        publish_as_version_1(first, 1, make("s"))
        publish_as_version_1(first, 2, take("a"))
        for vector in VECTORS["retired"]:
            _publish(first, "c", bytes.fromhex(vector["body"]))
        publish_as_version_1(first, 3, rows(draft(0, 1), draft(1, 2)))
        wait_for(first, 6)
        assert version(first) == 1
        first.close()
    again = opened("first")
    until(lambda: version(again) == codec.VERSION)
    other = opened("other")
    assert other.run(AppendRecord(("b",), b"x")) == 8, "one message says the version, no more"
    wait_for(again, 8)
    assert content(again) == content(other)
    with other.reading() as view:
        stream = view.stream(make("s").name)
        assert stream is not None
        commit = view.last_commit(stream)
        assert commit is not None
        assert (commit.lsn, commit.rows_total) == (6, 2)


async def _nothing(_: JetStreamLog) -> None:
    """A server that does not say its version."""


def test_what_a_server_of_version_1_publishes_to_a_raised_log_is_passed_over_on_all_servers(
    opened: Callable[[str], JetStreamLog], caplog: pytest.LogCaptureFixture
) -> None:
    servers = [opened("a"), opened("b")]
    servers[0].run(make("s"))
    publish_as_version_1(servers[0], 1, rows(draft(0, 1)))
    servers[0].run(AppendRecord(("a",), b"x"))
    for server in servers:
        wait_for(server, 3)
        with server.reading() as view:
            assert list(view.tagged("s/s/0")) == []
    assert "is of version 1, and the log has been of version 6 since" in caplog.text
    assert "stop that server, or upgrade it" in caplog.text
    assert content(servers[0]) == content(servers[1])


def test_a_server_of_the_version_before_stops_at_the_first_message_of_the_next(
    opened: Callable[[str], JetStreamLog],
) -> None:
    log = opened("a")
    log.run(make("s"))
    (message,) = messages(OperationId(b"upgraded", 1), AppendRecord(("a",), b"x"))
    _publish(log, message.subject, bytes([codec.VERSION + 1]) + message.body[1:])
    until(lambda: log._applier.broken is not None)
    with pytest.raises(TryAgain, match="version 7, and this server reads up to 6; start"):
        log.run(AppendRecord(("a",), b"x"))


@pytest.mark.parametrize("named", ["newest", "newest-2", "newest-3", "newest-4"])
def test_a_state_is_named_where_servers_of_earlier_versions_do_not_look_and_theirs_is_read(
    opened: Callable[[str], JetStreamLog], monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    log = opened("a")
    log.run(AppendRecord(("a",), b"x"))
    keeper = log._keeper
    monkeypatch.setattr(keeper, "_newest", f"{keeper._base}.{named}")
    log.purge(0)
    old_state = keeper.newest()
    assert old_state is not None
    monkeypatch.undo()
    assert keeper._newest.endswith(f".newest-{codec.VERSION}")
    assert keeper.newest() == old_state, "the one of before is good until there is a later one"
    log.run(AppendRecord(("a",), b"y"))
    log.purge(0)
    state = keeper.newest()
    assert state is not None
    assert state.lsn == 2 > old_state.lsn
    assert keeper._named_under(f"{keeper._base}.{named}")[0] is None


def test_a_stream_of_version_2_that_holds_what_stopped_every_server_opens_and_is_raised(
    opened: Callable[[str], JetStreamLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    query, path = "é" * 100, f"state/0/0/{'n' * 470}/1.changelog"
    with monkeypatch.context() as before:
        before.setattr(JetStreamLog, "_announce_version", _nothing)
        first = opened("first")
        publish_as(2, first, 1, take(query))
        publish_as(2, first, 2, files(path, query=query))
        named = mark(query=query, files={path: 2})
        snapshots = msgspec.structs.replace(
            named.marker, snapshots=(), positions={"x" * 300: Lsn(0)}
        )
        publish_as(2, first, 3, Mark(snapshots))
        publish_as(2, first, 4, Mark(msgspec.structs.replace(snapshots, files=())))
        wait_for(first, 4)
        first.close()
    servers = [opened("first"), opened("other")]
    until(lambda: version(servers[0]) == codec.VERSION)
    assert servers[1].run(take(query, "next")).marker.lsn == 4, "accepted as it was before"
    wait_for(servers[0], 6)
    assert content(servers[0]) == content(servers[1])
    again = Mark(msgspec.structs.replace(snapshots, files=(), instance=Instance(2), batch=1))
    with pytest.raises(BadCall, match="the name of an input is 'xxx"):
        servers[0].run(again)
