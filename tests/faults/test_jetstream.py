"""A log in JetStream while its servers, and the servers in front of it, are killed."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.client import Client
from penstock.errors import Fenced, TryAgain
from penstock.log import invariants
from penstock.log.address import log_address
from penstock.log.backends.jetstream.log import PURGE_VERSION, JetStreamLog
from penstock.log.operations import AppendRecord, TrimStream
from penstock.model.ids import Lsn, StreamName
from penstock.settings.server import Settings
from penstock.testing.nats_servers import NatsServers, nats_program
from support.log.backends import content, end_of, wait_for
from support.log.drafts import draft, make, mark, pending, rows, take
from support.servers.http_server import Answer, Served, table
from support.servers.processes import wait_until
from support.skip_reasons import NO_NATS

pytestmark = pytest.mark.skipif(nats_program() is None, reason=NO_NATS)

WRITERS = 6
STOP_S_MAX = 1


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServers]:
    with NatsServers(tmp_path / "nats") as servers:
        yield servers


def opened(folder: Path, nats: NatsServers, **more: int) -> JetStreamLog:
    return JetStreamLog.open(folder, log_address(nats.url), Settings(**more))


def wait_for_leader(nats: NatsServers) -> int:
    """The leader of the log's stream; while another is chosen there is none."""
    leaders: list[int] = []

    def is_there() -> bool:
        leader = nats.leader("penstock")
        leaders.extend([] if leader is None else [leader])
        return bool(leaders)

    wait_until("the log has a leader", is_there)
    return leaders[0]


def is_even(nats: NatsServers) -> bool:
    """Whether all servers run and have as many messages of the log."""
    counts = nats.messages("penstock")
    return len(counts) == len(nats.numbers) and len(set(counts)) == 1


class Load:
    """Writers that append records one after the other until told to stop."""

    def __init__(self, *logs: JetStreamLog) -> None:
        self._stop = threading.Event()
        self.answered: dict[tuple[int, int], Lsn] = {}
        self.failed: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._write, args=(writer, logs[writer % len(logs)]))
            for writer in range(WRITERS)
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, writer: int, log: JetStreamLog) -> None:
        number = 0
        while not self._stop.is_set():
            payload = b"%d:%d" % (writer, number)
            try:
                self.answered[writer, number] = log.run(AppendRecord(("load",), payload))
            except BaseException as error:
                self.failed.append(error)
                return
            number += 1

    def wait_for_more(self, count: int, seconds: float = 120.0) -> None:
        wanted, until = len(self.answered) + count, time.monotonic() + seconds
        while len(self.answered) < wanted:
            assert time.monotonic() < until, f"{len(self.answered)} of {wanted}, {self.failed}"
            time.sleep(0.01)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)

    def check(self, *logs: JetStreamLog) -> None:
        """Every answer is in the log at its place, each once, and nothing else is."""
        assert not self.failed
        last = max(end_of(log) for log in logs)
        for log in logs:
            wait_for(log, last)
            with log.reading() as view:
                in_log = {lsn: bytes(view.payload(lsn)) for lsn in view.tagged("load")}
            acknowledged = {lsn: b"%d:%d" % key for key, lsn in self.answered.items()}
            assert in_log == acknowledged
            invariants.check(log)


def test_the_leader_is_killed_under_load_and_nothing_is_lost(
    nats: NatsServers, tmp_path: Path
) -> None:
    logs = opened(tmp_path / "a", nats), opened(tmp_path / "b", nats)
    load = Load(*logs)
    try:
        for _ in range(2):
            load.wait_for_more(200)
            leader = wait_for_leader(nats)
            nats.kill(leader)
            load.wait_for_more(200)
            nats.start(leader)
            nats.wait_ready()
    finally:
        load.stop()
    load.check(*logs)
    assert content(logs[0]) == content(logs[1])
    for log in logs:
        log.close()


def test_servers_killed_around_purges_hold_the_same_messages_afterwards(
    nats: NatsServers, tmp_path: Path
) -> None:
    log = opened(tmp_path / "a", nats, purge_bytes_min=0, purge_wait_s=0)
    if log._connection.numbers < PURGE_VERSION:
        log.close()
        pytest.skip(
            f"skipped, because nats-server {log._connection.version} is not told to purge: install "
            f"{'.'.join(map(str, PURGE_VERSION))} or newer"
        )
    log.run(make())
    for turn in range(3):
        last = [log.run(rows(draft(0, n), draft(1, n))).position for n in range(60)][-1]
        leader = wait_for_leader(nats)
        killed = leader if turn == 1 else (leader + 1) % len(nats.numbers)
        log.run(TrimStream(StreamName("s"), last, 0))  # which purges by itself, meanwhile
        nats.kill(killed)
        log.run(rows(draft(0, turn)))
        nats.start(killed)
        wait_until("all hold as much", lambda: is_even(nats))
    left = log.run(rows(draft(1, 7))).position
    log.run(TrimStream(StreamName("s"), Lsn(left - 1), 0))
    # All three turns are purged, whichever purges the kills have cut short.
    wait_until("it is purged", lambda: all(n < 60 for n in nats.messages("penstock")))
    wait_until("all hold as much", lambda: is_even(nats))
    nats.kill(wait_for_leader(nats))  # what comes now is of another replica
    new = opened(tmp_path / "new", nats)
    wait_for(new, end_of(log))
    assert content(new) == content(log)
    new.close()
    log.close()


def test_without_a_quorum_it_waits_with_a_message_and_goes_on_when_there_is_one(
    nats: NatsServers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = opened(tmp_path / "a", nats)
    load = Load(log)
    try:
        load.wait_for_more(50)
        with caplog.at_level(logging.WARNING, "penstock.log"):
            for number in (1, 2):
                nats.kill(number)
            is_down = f"{nats.address(0)} (up), {nats.address(1)} (down)"
            wait_until("it says so", lambda: is_down in caplog.text)
            before = len(load.answered)
            time.sleep(1)
            assert len(load.answered) == before, "one server of three answers nothing"
            assert not load.failed
        for number in (1, 2):
            nats.start(number)
        load.wait_for_more(50)
    finally:
        load.stop()
    load.check(log)
    warnings = [record.getMessage() for record in caplog.records if is_down in record.getMessage()]
    assert all("has stood still" in warning for warning in warnings)
    assert all("operations wait and none is lost" in warning for warning in warnings)
    log.close()


def test_a_log_that_cannot_be_reached_at_start_is_waited_for_and_then_given_up(
    nats: NatsServers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in nats.numbers:
        nats.kill(number)
    with pytest.raises(TryAgain, match=r"gave no answer for 5 s.*\(down\).*start those"):
        opened(tmp_path / "a", nats, log_wait_s_max=5)
    assert "waiting for the log" in caplog.text
    for number in nats.numbers:
        nats.start(number)
    opened(tmp_path / "a", nats).close()


def test_a_server_killed_and_restarted_without_its_folder_builds_it_anew(
    nats: NatsServers, tmp_path: Path
) -> None:
    options = ("--log", nats.url)
    with Served(tmp_path / "data", *options) as server:
        assert server.make().status in (200, 201)
        for key in range(30):
            assert (
                server.append(table(key), Penstock_Producer="p", Penstock_Sequence=str(key)).status
                == 200
            )
        server.kill()
    shutil.rmtree(tmp_path / "data")
    with Served(tmp_path / "data", *options) as server:
        assert server.values() == list(range(30))
        again = server.append(table(29), Penstock_Producer="p", Penstock_Sequence="29")
        assert again.json()["duplicate"] is True
        assert server.values() == list(range(30))


def test_a_server_without_a_quorum_stops_in_time_and_what_it_left_unanswered_counts_once(
    nats: NatsServers, tmp_path: Path
) -> None:
    options = ("--log", nats.url, "--set", f"stop_s_max={STOP_S_MAX}", "--set", "collect_s=0")
    answers: list[int] = []
    said: list[str] = []
    with Served(tmp_path / "data", *options) as server:
        for stream in ("s", "old"):
            assert server.make(stream).status == 201
            assert server.append(table(0), stream, **sequence(0)).status == 200
        assert server.append(table(1), "old", **sequence(1)).status == 200
        assert server.ask("PATCH", "/streams/old", {"bytes_max": 1}).status == 200
        for number in (1, 2):
            nats.kill(number)
        asking = [
            threading.Thread(target=ask, args=(answers, each), daemon=True)
            for each in (
                lambda: server.append(table(1), **sequence(1)),
                lambda: server.ask("POST", "/collect"),
            )
        ]
        threading.Thread(target=said.extend, args=(server.process.stderr,), daemon=True).start()
        for thread in asking:
            thread.start()
        wait_until("it says so", lambda: "2 operations wait" in "".join(said))
        began = time.monotonic()
        server.process.terminate()
        assert server.process.wait(120) == 0
        # And what it takes to cut connections and to close the log, on a machine that is busy.
        assert time.monotonic() - began < 2 * STOP_S_MAX + 30
        for thread in asking:
            thread.join(120)
    assert 200 not in answers, "nobody can know yet whether it takes place"
    assert json.loads((tmp_path / "data" / "index.json").read_text())["running"] is False
    for number in (1, 2):
        nats.start(number)
    nats.wait_ready()
    with Served(tmp_path / "data", *options) as server:
        assert server.append(table(1), **sequence(1)).status == 200
        assert server.append(table(2), **sequence(2)).status == 200
        assert server.values() == [0, 1, 2]


def sequence(number: int) -> dict[str, str]:
    return {"Penstock_Producer": "p", "Penstock_Sequence": str(number)}


def ask(answers: list[int], call: Callable[[], Answer]) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        answers.append(call().status)


def test_two_servers_in_front_of_one_log_are_one_log_to_their_clients(
    nats: NatsServers, tmp_path: Path
) -> None:
    options = ("--log", nats.url)
    with (
        Served(tmp_path / "a", *options) as first_server,
        Served(tmp_path / "b", *options) as second_server,
    ):
        with (
            Client(first_server.url, first_server.token) as first_client,
            Client(second_server.url, second_server.token) as second_client,
        ):
            first_client.create("s", "k bigint", substreams=2)
            rows_in = pa.table({"k": pa.array([1, 2], pa.int64())})
            first_client.append("s", rows_in)
            wait_until("the other server knows the stream", lambda: bool(second_client.streams()))
            second_client.append("s", rows_in)
        wait_until(
            "one server has heard of the other's rows", lambda: len(first_server.values()) >= 4
        )
        assert sorted(first_server.values()) == sorted(second_server.values()) == [1, 1, 2, 2]
        path = "/queries/q/instances"
        assert first_server.ask("POST", path, {"run": "first"}).json()["instance"] == 1
        assert second_server.ask("POST", path, {"run": "second"}).json()["instance"] == 2
        fenced = first_server.ask("POST", path, {"run": "first"})
        assert (fenced.status, fenced.code) == (409, "fenced")


def test_an_instance_fenced_at_one_server_cannot_mark_at_the_other(
    nats: NatsServers, tmp_path: Path
) -> None:
    first_log, second_log = opened(tmp_path / "a", nats), opened(tmp_path / "b", nats)
    first_log.run(make())
    first_log.run(take(run="first"))
    entries = first_log.run(pending(draft(0, 1)))
    second_log.run(take(run="second"))
    with pytest.raises(Fenced):
        first_log.run(mark(*entries))
    with pytest.raises(Fenced):
        second_log.run(mark(*entries))
    for log in (first_log, second_log):
        invariants.check(log)
        log.close()
