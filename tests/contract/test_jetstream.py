"""What only a log in JetStream can get wrong: its stream, its index, and its messages."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from penstock.errors import BadCall, Damaged, TryAgain
from penstock.log.address import log_address
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.jetstream import log as jetstream_log
from penstock.log.backends.jetstream.codec import OperationId, messages
from penstock.log.backends.jetstream.connection import ApiError, Connection
from penstock.log.backends.jetstream.log import JetStreamLog
from penstock.log.backends.jetstream.replay import open_operation
from penstock.log.backends.jetstream.stream import Agreed, create_stream
from penstock.log.operations import AppendRecord, TrimStream, TrimTag
from penstock.model.ids import Lsn, StreamName
from penstock.settings.server import Settings
from penstock.testing.nats_servers import NatsServers
from support.log.backends import content, wait_for
from support.log.drafts import draft, make, rows

Opening = Callable[..., JetStreamLog]


@pytest.fixture
def opened(nats: NatsServers, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Opening]:
    """Opens a server on a folder by name; the test has a stream to itself. Closes what is left."""
    name = request.node.name[:60].replace("[", "-").replace("]", "")
    left: list[JetStreamLog] = []

    def open_one(folder: str = "a", **more: int) -> JetStreamLog:
        address = log_address(f"{nats.url}/{name}")
        log = JetStreamLog.open(tmp_path / folder, address, Settings(**more))
        left.append(log)
        return log

    yield open_one
    for log in left:
        if not log._publisher.bounds._closed:
            log.close()


def publish(log: JetStreamLog, subject: str, body: bytes) -> None:
    connection = log._connection
    connection.call(connection.client.publish(f"{connection.address.name}.{subject}", body))


def until(is_so: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def record(*tags: str, payload: bytes = b"x") -> AppendRecord:
    return AppendRecord(tags, payload)


def messages_of(log: JetStreamLog) -> int:
    connection = log._connection
    info = connection.call(connection.api(f"STREAM.INFO.{connection.address.name}"))
    return int(info["state"]["messages"])


def test_a_message_that_is_published_again_after_the_id_window_counts_once(opened: Opening) -> None:
    log = opened()
    sent = messages(OperationId(b"anothers", 1), record("a"))
    for _ in range(3):  # without an id, as if the window had passed
        publish(log, sent[0].subject, sent[0].body)
    log.run(record("b"))
    assert messages_of(log) == 4
    with log.reading() as view:
        assert list(view.tagged("a")) == [1]


def test_a_server_waits_for_the_answers_that_it_needs_to_open_the_log(
    opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers that are busy answer late, and those that elect a leader not at all."""
    opened().close()
    ask, unanswered = Connection.api, ["STREAM.INFO", "STREAM.MSG.GET"]

    async def api(self: Connection, subject: str, body: Any = None) -> dict[str, Any]:
        if unanswered and subject.startswith(unanswered[0]):
            raise ApiError(503, 0, f"no answer to {unanswered.pop(0)}")
        return await ask(self, subject, body)

    monkeypatch.setattr(Connection, "api", api)
    assert opened().run(record("a")) == 1
    assert not unanswered


def test_what_others_publish_on_the_stream_is_passed_over(opened: Opening) -> None:
    log = opened()
    publish(log, "x.a", b"hello")
    assert log.run(record("a")) == 2


def test_an_operation_that_a_dead_server_left_half_published_is_taken_back(
    opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream_log, "OPEN_S_MAX", 0.3)
    monkeypatch.setattr(jetstream_log, "WATCH_S", 0.1)
    log = opened()
    log.run(make())
    first, _ = messages(OperationId(b"deadserv", 1), rows(draft(0, 1), draft(1, 2)))
    publish(log, first.subject, first.body)
    with log.subscribe(["s/s/0"]) as reader:
        (lsn,) = log.run(rows(draft(0, 3))).entries
        assert [entry.head.lsn for entry in reader.next(120)] == [lsn]
    with log.reading() as view:
        assert view.settled({"s/s/0"}) >= lsn
        assert list(view.tagged("s/s/0")) == [lsn]


def test_an_operation_that_is_half_published_holds_nobody_back_but_the_readers_of_its_tags(
    opened: Opening,
) -> None:
    log = opened()
    log.run(make(substreams=3))
    first, last = messages(OperationId(b"stalling", 1), rows(draft(0, 1), draft(1, 2)))
    publish(log, first.subject, first.body)
    with (
        log.subscribe(["a"]) as of_records,
        log.subscribe(["s/s/2"]) as of_another,
        log.subscribe(["a", "s/s/0"]) as of_both,
    ):
        (lsn,) = log.run(rows(draft(2, 3))).entries
        recorded = log.run(record("a"))
        assert [entry.head.lsn for entry in of_records.next(120)] == [recorded]
        assert [entry.head.lsn for entry in of_another.next(120)] == [lsn]
        assert of_both.next(0) == []
        with log.reading() as view:
            assert open_operation(view) is not None, "nobody has taken it back meanwhile"
        publish(log, last.subject, last.body)
        entries = of_both.next(120)
        assert [entry.head.lsn for entry in (*entries, *of_both.next(0))] == [lsn - 1, recorded]


def test_an_entry_over_the_servers_payload_is_refused_with_both_sizes(
    tmp_path: Path, nats: NatsServers
) -> None:
    del nats  # asked for, so that the test is skipped without a server
    with NatsServers(tmp_path / "small", count=1, payload_max=128 << 10) as small:
        address = log_address(small.url)
        log = JetStreamLog.open(tmp_path / "data", address, Settings(log_replicas=1))
        assert log.settings.entry_bytes_max == 64 << 10
        with pytest.raises(BadCall, match=r"100000 bytes, and an entry has at most 65536"):
            log.run(record("a", payload=bytes(100_000)))
        log.run(make())
        big = rows(draft(0, *range(20_000)))
        with pytest.raises(BadCall, match=r"entry of 16\d+ bytes .* at most 130560 bytes.*split"):
            log.run(big)
        assert log.run(record("a", payload=bytes(65_536))) == 2
        log.close()


def test_three_replicas_on_one_server_are_refused_with_what_to_do(
    tmp_path: Path, nats: NatsServers
) -> None:
    del nats
    with (
        NatsServers(tmp_path / "alone", count=1) as alone,
        pytest.raises(BadCall, match=r"3 replicas.*start at least 3 servers as a cluster"),
    ):
        JetStreamLog.open(tmp_path / "data", log_address(alone.url))


def test_a_stream_that_is_no_log_is_refused_with_what_is_wrong(opened: Opening) -> None:
    log = opened()
    connection = log._connection
    config = {"name": "other", "subjects": ["other.>"], "max_age": 1_000_000_000, "num_replicas": 1}
    connection.call(connection.api("STREAM.CREATE.other", config))
    address = log_address(f"nats://{connection.address.servers[0]}/other")
    with pytest.raises(BadCall, match="cannot hold a log: it discards old messages by itself"):
        JetStreamLog.open(log.folder.path.parent / "b", address)


def test_what_decisions_rest_on_is_what_the_log_was_made_with(
    opened: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    assert opened("a", producers_max=7).settings.producers_max == 7
    assert opened("b", producers_max=9).settings.producers_max == 7
    assert "was made with producers_max=7, which counts on all its servers; 9 is not" in caplog.text


def test_a_server_that_makes_the_stream_a_moment_after_another_takes_that_one(
    opened: Opening,
) -> None:
    log = opened()
    connection = log._connection
    late = Agreed(7, "another id")
    created = connection.call(
        create_stream(connection, connection.address.name, 3, json.dumps(asdict(late)))
    )
    agreed = json.loads(created["config"]["description"])
    assert agreed == asdict(log._state.agreed)
    assert agreed["id"]
    assert agreed["producers_max"] != 7


def test_the_folder_of_a_log_and_that_of_an_index_are_not_taken_for_each_other(
    opened: Opening, tmp_path: Path
) -> None:
    opened("a").close()
    with pytest.raises(BadCall, match=r"holds an index of the log nats:.* with --log nats:"):
        EmbeddedLog.open(tmp_path / "a")
    EmbeddedLog.open(tmp_path / "own").close()
    with pytest.raises(BadCall, match="holds a log of its own; start without --log"):
        opened("own")


def test_an_index_that_cannot_be_gone_on_with_is_made_anew(
    opened: Opening, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of another stream, of another version, of before the machine went down, and cut short."""
    log = opened()
    lsn = log.run(record("a", payload=bytes(100_000)))
    log.close()
    file = tmp_path / "a" / "index.json"
    wrongs = ({"created": "then"}, {"version": 1}, {"running": True, "boot": "another"})
    for wrong in wrongs:
        file.write_text(json.dumps(json.loads(file.read_text()) | wrong))
        log = opened()
        with log.reading() as view:
            assert list(view.tagged("a")) == [lsn]
        log.close()
    data = tmp_path / "a" / "log" / "data.mdb"
    with data.open("rb+") as short:
        short.truncate(data.stat().st_size // 2)
    opened().close()
    assert "is of another stream" in caplog.text
    assert "is of version 1 of the log, and this server's is 6; it is made anew" in caplog.text
    assert "the machine stopped with the index" in caplog.text
    assert "is made anew" in caplog.text


def test_a_stream_that_lost_what_it_acknowledged_is_refused(opened: Opening) -> None:
    log = opened()
    log.run(record("a"))
    with log._env.begin(write=True) as txn:
        txn.put(b"next_lsn", b"\x63", db=log._tables["counters"])  # 99
    log.close()
    with pytest.raises(Damaged, match=r"ends at 1, and the index in .* has seen 98"):
        opened()


def test_a_stream_whose_beginning_somebody_has_purged_is_refused(opened: Opening) -> None:
    log = opened()
    for _ in range(3):
        log.run(record("a"))
    connection = log._connection
    connection.call(connection.api(f"STREAM.PURGE.{connection.address.name}", {"seq": 3}))
    with pytest.raises(Damaged, match=r"the messages 1 to 2 of the log .* are gone, and no state"):
        opened("new")


def test_what_is_trimmed_is_purged_by_itself_and_another_server_starts_without_it(
    opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream_log, "PURGE_VERSION", (2, 9))  # no server goes down here
    log = opened(purge_bytes_min=0, purge_wait_s=0)
    log.run(make())
    last = [log.run(rows(draft(0, n), draft(1, n))).position for n in range(50)][-1]
    log.run(TrimStream(StreamName("s"), last, 0))
    until(lambda: messages_of(log) <= 1)
    new = opened("new")
    wait_for(new, last + 1)
    assert content(new) == content(log)


def test_a_version_whose_replicas_a_purge_may_part_is_not_told_to_purge(
    opened: Opening, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(jetstream_log, "PURGE_VERSION", (99, 0))
    log = opened(purge_bytes_min=0, purge_wait_s=0)
    lsn = log.run(record("a"))
    log.run(TrimTag("a", lsn))
    until(lambda: "stays in its stream" in caplog.text)
    assert "upgrade to 99.0 or newer" in caplog.text
    assert messages_of(log) == 2


def test_an_entry_that_goes_after_a_later_one_does_not_take_a_trim_point_back(
    opened: Opening,
) -> None:
    # An operation has its first place before another's, and is complete after it.
    #   place       2     3     4
    #   substream   0     0     1
    #   commit      at 4  at 3  at 4
    log = opened()
    log.run(make())
    first, second = messages(OperationId(b"slowserv", 1), rows(draft(0, 1), draft(1, 2)))
    publish(log, first.subject, first.body)
    middle = log.run(rows(draft(0, 3))).position
    publish(log, second.subject, second.body)
    wait_for(log, middle + 1)
    for until_place in (middle, middle + 1):
        log.run(TrimStream(StreamName("s"), Lsn(until_place), 0))
    with log.reading() as view:
        assert [view.trimmed(f"s/s/{each}") for each in (0, 1)] == [middle, middle + 1]


def test_what_a_server_says_of_its_log_names_the_promise_and_the_sync(opened: Opening) -> None:
    log = opened()
    assert (
        f"nats-server {log._connection.version}; an answer means that 2 of 3 servers hold it"
        in (log.about)
    )
    assert "sync" in log.about


def test_a_server_that_was_away_for_too_long_says_so_and_comes_back_after_a_start(
    opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, behind = opened("a"), opened("b")
    queue = Discarding()
    monkeypatch.setattr(behind._applier, "_queue", queue)
    for _ in range(20):
        last = log.run(record("a"))
    until(lambda: queue.forgotten >= 20)
    log.run(TrimTag("a", Lsn(last - 1)))
    log.purge(0)
    monkeypatch.undo()
    log.run(record("a"))
    until(lambda: behind._applier.broken is not None)
    with pytest.raises(TryAgain, match=r"were purged before they were applied; start the server"):
        behind.run(record("a"))
    behind.close()
    again = opened("b")
    wait_for(again, last)
    assert content(again) == content(log)


class Discarding(list[object]):
    """A queue that forgets: what a server that stands still has not applied."""

    forgotten = 0

    def append(self, item: object) -> None:
        del item
        self.forgotten += 1
