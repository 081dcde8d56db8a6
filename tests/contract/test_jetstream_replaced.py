"""A stream that is replaced, loses its end or has a hole, under servers that follow it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Damaged
from penstock.log.address import log_address
from penstock.log.backends.jetstream import follower
from penstock.log.backends.jetstream.log import JetStreamLog
from penstock.log.backends.jetstream.stream import create_stream
from penstock.log.operations import AppendRecord, TrimTag
from penstock.model.ids import Lsn
from penstock.settings.server import Settings
from penstock.testing.nats_servers import NatsServers
from support.log.backends import wait_for

NOTICED_S = 60.0


@pytest.fixture
def alone(tmp_path: Path, nats: NatsServers) -> Iterator[NatsServers]:
    """One server of JetStream for this test, to be stopped and put back."""
    del nats  # asked for, so that the test is skipped without a server
    with NatsServers(tmp_path / "alone", count=1) as servers:
        yield servers


@pytest.fixture
def opened(alone: NatsServers, tmp_path: Path) -> Iterator[Callable[[str], JetStreamLog]]:
    logs: list[JetStreamLog] = []

    def open_server(folder: str) -> JetStreamLog:
        address = log_address(f"{alone.url}/log")
        settings = Settings(log_replicas=1, log_wait_s_max=30, stop_s_max=1)
        logs.append(JetStreamLog.open(tmp_path / folder, address, settings))
        return logs[-1]

    yield open_server
    for log in logs:
        if not log._publisher.bounds._closed:
            log.close()


@pytest.fixture(autouse=True)
def soon_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference has to stay for less time than servers are given elsewhere."""
    monkeypatch.setattr(follower, "CONFIRM_S", 3.0)


def record(text: str) -> AppendRecord:
    return AppendRecord(("a",), text.encode())


def refusal(log: JetStreamLog) -> str:
    """The sentence with which the server stops."""
    until = time.monotonic() + NOTICED_S
    while log._applier.broken is None:
        assert time.monotonic() < until, "the server goes on as if nothing had happened"
        time.sleep(0.01)
    with pytest.raises(Damaged) as caught:
        log.submit(record("after"))
    return caught.value.message


def test_a_stream_made_anew_under_a_running_server_stops_it(
    opened: Callable[[str], JetStreamLog], caplog: pytest.LogCaptureFixture
) -> None:
    log = opened("data")
    for number in range(3):
        log.run(record(f"{number}"))
    connection = log._connection
    connection.call(connection.api("STREAM.DELETE.log"))
    connection.call(create_stream(connection, "log", 1, "{}"))
    for _ in range(5):
        sent = connection.client.request("log.x.a", b"another log", timeout=10)
        connection.call(sent)
    message = refusal(log)
    assert "is another one than this server has followed" in message
    assert "start the server again" in message
    assert message in caplog.text, "said in the log of the server, too"
    with log.reading() as view:
        assert list(view.tagged("a")) == [1, 2, 3]


def test_a_stream_that_lost_its_end_under_a_running_server_stops_it(
    opened: Callable[[str], JetStreamLog], alone: NatsServers, tmp_path: Path
) -> None:
    log = opened("data")
    log.run(record("0"))
    store, kept = tmp_path / "alone" / "n0" / "store", tmp_path / "kept"
    alone.kill(0)
    shutil.copytree(store, kept)
    alone.start(0)
    alone.wait_ready()
    for number in range(3):
        log.run(record(f"{number}"))
    alone.kill(0)
    shutil.rmtree(store)
    kept.rename(store)
    alone.start(0)
    alone.wait_ready()
    message = refusal(log)
    assert "ends at 1, and this server has seen 4" in message
    assert "restore it from a backup" in message


def test_a_stream_whose_end_was_written_anew_is_told_by_its_last_message(
    opened: Callable[[str], JetStreamLog],
) -> None:
    log = opened("data")
    for number in range(3):
        log.run(record(f"{number}"))
    log._follower._last_handed_on = ("x.a", 12345)  # what another message had
    log._connection.on_reconnect()
    assert "has another message at 3 than this server has seen there" in refusal(log)


def test_a_leader_that_answers_before_it_has_applied_everything_is_asked_again(
    opened: Callable[[str], JetStreamLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened("data")
    for number in range(3):
        log.run(record(f"{number}"))
    ask, answers_behind = log._connection.api, 3

    async def api(route: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        nonlocal answers_behind
        answer = await ask(route, body)
        if route == "STREAM.INFO.log" and answers_behind:
            answers_behind -= 1
            answer["state"]["last_seq"] = 1
        return answer

    monkeypatch.setattr(log._connection, "api", api)
    log._connection.on_reconnect()
    assert log.submit(record("3")).result(NOTICED_S) == 4
    assert answers_behind == 0
    assert log._applier.broken is None


def test_a_server_that_reconnects_to_the_same_stream_goes_on(
    opened: Callable[[str], JetStreamLog], alone: NatsServers
) -> None:
    log = opened("data")
    log.run(record("0"))
    alone.kill(0)
    alone.start(0)
    alone.wait_ready()
    assert log.run(record("1")) == 2
    log._connection.on_reconnect()
    assert log.run(record("2")) == 3


def test_a_hole_in_the_stream_stops_who_follows_it_and_a_server_that_starts(
    opened: Callable[[str], JetStreamLog],
) -> None:
    log = opened("data")
    for number in range(5):
        log.run(record(f"{number}"))
    connection = log._connection
    connection.call(connection.api("STREAM.MSG.DELETE.log", {"seq": 3}))
    with pytest.raises(Damaged, match=r"the stream lacks the messages 3 to 3.*from a backup"):
        opened("other")
    assert log.run(record("5")) == 6, "who had applied it lacks nothing"


def test_holes_below_a_state_that_is_written_down_are_no_loss(
    opened: Callable[[str], JetStreamLog],
) -> None:
    log = opened("data")
    for number in range(5):
        log.run(record(f"{number}"))
    log.run(TrimTag("a", Lsn(3)))
    log.purge(0)
    assert log.run(record("5")) == 7
    other = opened("other")
    wait_for(other, 7)
    with other.reading() as view:
        assert list(view.tagged("a")) == [4, 5, 7]
    other._connection.on_reconnect()
    assert other.run(record("6")) == 8
