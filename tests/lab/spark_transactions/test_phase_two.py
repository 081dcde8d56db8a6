"""Phase two of the coordinator when it cannot simply go through: against a real log server."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.client import Client
from penstock.errors import BadCall, TryAgain
from penstock_lab.baselines.spark_transactions.book import TAG, Step
from penstock_lab.baselines.spark_transactions.coordinator import Coordinator
from penstock_lab.baselines.task_graph.protocols.transaction.own_stream import TRIM_EVERY
from support.servers.http_server import ARROW, ipc, table
from support.servers.processes import ServerProcess

QUERY = "q"
DEADLINE_S = 0.5


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "data").start()
    yield server
    server.stop()


class Calls(Client):
    """A client whose marker call something happens to: once, before or after it is carried out."""

    before: Callable[[], None] | None = None
    after: Callable[[], None] | None = None
    marks = 0
    holds: str | None = None
    """Of this step the first copy is held back on its way, and arrives when `let_go` says so."""
    held: Callable[[], Any] | None = None

    def append_record(self, tags: Sequence[str], payload: bytes, **named: Any) -> Any:
        if self.holds is not None and tags == [TAG] and said(payload) == self.holds:
            self.holds = None
            self.held = partial(super().append_record, tags, payload, **named)
            raise TryAgain("nobody answers", code="unreachable")
        return super().append_record(tags, payload, **named)

    def let_go(self) -> None:
        assert self.held is not None
        self.held()

    def mark(self, query: str, marker: Any) -> Any:
        self.marks += 1
        for happens, is_first in ((self.before, True), (self.after, False)):
            if happens is None:
                continue
            self.before = self.after = None
            if not is_first:
                super().mark(query, marker)
            happens()
            raise TryAgain("the server is gone", code="unreachable")
        return super().mark(query, marker)


def client_of(server: ServerProcess) -> Calls:
    return Calls(server.url, server.token, deadline_s=DEADLINE_S)


def entries(client: Client, instance: int, batch: int, *keys: int) -> dict[str, Any]:
    """The marker of a batch with one task, whose rows are appended and wait."""
    stamp = {"query": QUERY, "instance": instance, "batch": batch, "partition": 0, "attempt": 0}
    got = client._wire.request(
        "POST",
        ("streams", "s", "entries"),
        {**stamp, "substreams": "0"},
        body=ipc(table(*keys)),
        headers={"Content-Type": ARROW},
    )
    write = {"stream": "s", "partition": 0, "attempt": 0, "entries": got.json()["entries"]}
    return {"instance": instance, "batch": batch, "writes": [write], "commit": "e30="}


def begin(client: Client, run: str = "r") -> int:
    client.create("s", "k bigint, v string")
    return int(client.take_over(QUERY, run)["instance"])


def coordinating(client: Client, trim_every: int = TRIM_EVERY) -> Coordinator:
    return Coordinator(client, uuid.uuid4().hex, trim_every)


def steps(client: Client) -> list[str]:
    return [said(one.payload) for one in client.records(TAG)]


def said(payload: bytes) -> str:
    step = msgspec.json.decode(payload, type=Step)
    return f"{step.what} {step.batch}"


def visible(client: Client) -> list[int]:
    return list(client.read("s")["k"].to_pylist())


def refused(marked: str) -> str:
    return rf"batch 0 of the query 'q' was prepared by instance 1 and cannot be committed: {marked}"


def test_a_refused_commit_is_said_to_everyone_and_nothing_gets_past_it(
    server: ServerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(server)

    async def story() -> None:
        instance = begin(client)
        coordinator = coordinating(client)
        await coordinator.register(QUERY, instance, 0, {("s", 0)})
        marker = entries(client, instance, 0, 1, 2)
        client.before = lambda: client.delete_stream("s", force=True)
        await coordinator.prepare(QUERY, marker)
        with pytest.raises(BadCall, match=refused("there is no stream 's'")) as found:
            await coordinator.finished(QUERY)
        assert "none of it is visible" in found.value.message
        assert "or reset the query" in found.value.message
        # Neither the next batch, nor the same again, nor a coordinator that comes later.
        with pytest.raises(BadCall, match=refused("there is no stream")):
            await coordinator.register(QUERY, instance, 1, {("s", 0)})
        with pytest.raises(BadCall, match=refused("there is no stream")):
            await coordinator.prepare(QUERY, marker)
        later = coordinating(client)
        await later.recover()
        with pytest.raises(BadCall, match=refused("there is no stream")):
            await later.finished(QUERY)
        assert steps(client) == ["register 0", "prepare 0"], "not done"
        assert client.markers(QUERY) == []
        # A stream of the same name is another: its readers are not shown what was written before.
        client.create("s", "k bigint, v string")
        with pytest.raises(BadCall, match=refused("the entry .* is not there")):
            await coordinator.finished(QUERY)
        assert visible(client) == []
        # What the message says to do: the query begins again, and gets further.
        client.reset_query(QUERY)
        await coordinator.finished(QUERY)
        instance = int(client.take_over(QUERY, "r2")["instance"])
        await coordinator.register(QUERY, instance, 0, {("s", 0)})
        await coordinator.prepare(QUERY, entries(client, instance, 0, 3))
        await coordinator.finished(QUERY)
        assert visible(client) == [3]

    with caplog.at_level(logging.WARNING, "penstock_lab.baselines.spark_transactions"):
        asyncio.run(story())
    assert "is not committed: the query 'q' was taken over" in caplog.text


def test_a_query_that_was_deleted_leaves_nothing_to_commit(server: ServerProcess) -> None:
    client = client_of(server)

    async def story() -> None:
        coordinator = coordinating(client)
        marker = entries(client, begin(client), 0, 1)
        client.before = lambda: client.delete_query(QUERY)
        await coordinator.prepare(QUERY, marker)
        await coordinator.finished(QUERY)
        assert steps(client) == ["prepare 0", "done 0"]
        assert visible(client) == []

    asyncio.run(story())


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_log_server_that_goes_down_in_phase_two_is_waited_for_and_nothing_is_lost(
    when: str, server: ServerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it had carried the marker out or not: it is asked again, and marks once."""
    client = client_of(server)

    async def story() -> None:
        instance = begin(client)
        coordinator = coordinating(client)
        await coordinator.register(QUERY, instance, 0, {("s", 0)})
        marker = entries(client, instance, 0, 1, 2)
        setattr(client, when, server.kill)
        await coordinator.prepare(QUERY, marker)
        phase_two = asyncio.ensure_future(coordinator.finished(QUERY))
        # Tried at least twice while nobody is there, and not given up.
        while caplog.text.count("the log server is asked again") < 2:
            await asyncio.sleep(0.02)
        assert not phase_two.done()
        await asyncio.to_thread(server.start)
        await asyncio.wait_for(phase_two, 30)
        assert visible(client) == [1, 2]
        assert [one["batch"] for one in client.markers(QUERY)] == [0]
        assert steps(client) == ["register 0", "prepare 0", "done 0"]
        # The next batch goes through.
        await coordinator.register(QUERY, instance, 1, {("s", 0)})
        await coordinator.prepare(QUERY, entries(client, instance, 1, 3))
        await coordinator.finished(QUERY)
        assert visible(client) == [1, 2, 3]

    with caplog.at_level(logging.WARNING, "penstock_lab.baselines.spark_transactions"):
        asyncio.run(story())
    assert client.marks >= 3


def test_a_coordinator_that_goes_down_with_the_log_server_finishes_when_both_are_back(
    server: ServerProcess,
) -> None:
    client = client_of(server)

    async def first() -> None:
        instance = begin(client)
        coordinator = coordinating(client)
        await coordinator.register(QUERY, instance, 0, {("s", 0)})
        client.before = server.kill
        await coordinator.prepare(QUERY, entries(client, instance, 0, 1))
        while not client.marks:
            await asyncio.sleep(0.01)
        for task in coordinator._phase_two.values():
            task.cancel()

    async def second() -> None:
        coordinator = coordinating(client)
        await coordinator.recover()
        await coordinator.finished(QUERY)
        assert visible(client) == [1]
        assert steps(client)[-1] == "done 0"

    asyncio.run(first())
    server.start()
    asyncio.run(second())


def test_a_step_that_was_sent_twice_and_arrives_late_is_in_the_log_once(
    server: ServerProcess,
) -> None:
    client = client_of(server)

    async def first() -> None:
        instance = begin(client)
        coordinator = coordinating(client)
        await coordinator.register(QUERY, instance, 0, {("s", 0)})
        client.holds = "done 0"
        await coordinator.prepare(QUERY, entries(client, instance, 0, 1))
        await coordinator.finished(QUERY)
        await coordinator.register(QUERY, instance, 1, {("s", 0)})
        marker = entries(client, instance, 1, 2)
        # Killed when the second batch is prepared.
        await coordinator._note(Step("prepare", QUERY, instance, 1, marker=marker))
        client.let_go()

    async def second() -> None:
        coordinator = coordinating(client)
        await coordinator.recover()
        await coordinator.finished(QUERY)
        assert steps(client)[2:] == ["done 0", "register 1", "prepare 1", "done 1"]
        assert visible(client) == [1, 2]

    asyncio.run(first())
    asyncio.run(second())


def test_a_recovery_reads_no_more_however_many_batches_were_committed(
    server: ServerProcess,
) -> None:
    client, every, batches = client_of(server), 8, 40

    async def first() -> None:
        instance = begin(client)
        coordinator = coordinating(client, every)
        await coordinator.register("left", 1, 0, {("s", 0)})
        await coordinator.register("left", 1, 0, {("s", 1)})
        for batch in range(batches):
            await coordinator.register(QUERY, instance, batch, {("s", 0)})
            marker = {"instance": instance, "batch": batch, "writes": [], "commit": "e30="}
            await coordinator.prepare(QUERY, marker)
        await coordinator.finished(QUERY)
        while coordinator._trimming is not None and not coordinator._trimming.done():
            await coordinator._trimming

    async def second() -> None:
        coordinator = coordinating(client, every)
        await coordinator.recover()
        assert coordinator._book.missing("left", 1, 0, {("s", 0), ("s", 1)}) == set()
        await coordinator.finished(QUERY)

    asyncio.run(first())
    asyncio.run(second())
    begins = client.trim_records(TAG, 0)
    assert begins > 0
    # What a recovery reads, of some 120 steps; and of the commit records.
    assert 0 < len(client.records(TAG, begins)) <= 3 * every
    committed = "committed/s/0"
    assert len(client.records(committed, client.trim_records(committed, 0))) <= every
