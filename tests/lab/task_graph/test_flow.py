"""Pushes of a log's process: to who takes them, to who does not, and when there can be none."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from penstock.clock import SYSTEM_CLOCK
from penstock.errors import BadCall
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.contract import Entry
from penstock.log.operations import AppendRecord, TrimTag
from penstock.model.ids import Lsn
from penstock_lab.baselines.task_graph import follower, q4
from penstock_lab.baselines.task_graph import task as task_module
from penstock_lab.baselines.task_graph.follower import Follower, LoopCalls
from penstock_lab.baselines.task_graph.graph import Task
from penstock_lab.baselines.task_graph.log_client import LogClient, decode_entries
from penstock_lab.baselines.task_graph.log_process import LogServer
from penstock_lab.baselines.task_graph.messages import Rows, encode
from penstock_lab.baselines.task_graph.protocols.marker import MarkerRun
from penstock_lab.baselines.task_graph.socket_calls import (
    MessageDecoder,
    answer_at,
    encoded_message,
)
from penstock_lab.baselines.task_graph.task import Timing
from penstock_lab.baselines.task_graph.worker import WorkerJob, work
from support.log.raw_log import until

GRAPH = q4.graph(tasks=1)
IN = GRAPH.tags("r", "rises")[0]
COUNT = 20
BIG = bytes(1 << 20)  # more than the buffers of a socket take


@asynccontextmanager
async def hosted(folder: Path) -> AsyncIterator[tuple[EmbeddedLog, LogServer]]:
    log = EmbeddedLog.open(folder / "log")
    server = LogServer(log, asyncio.get_running_loop())
    socket_server = await answer_at(folder / "s", server.handle)
    try:
        yield log, server
    finally:
        socket_server.close()
        server.close()
        log.close()


@pytest.fixture(autouse=True)
def one_entry_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.log.reading.subscription.ENTRIES_MAX", 1)


def appended(log: EmbeddedLog, tag: str, payload: bytes, count: int = COUNT) -> list[Lsn]:
    return [Lsn(log.run(AppendRecord((tag,), payload))) for _ in range(count)]


async def only_follower(server: LogServer) -> Follower:
    await until(lambda: len(server._followers) == 1)
    (log_follower,) = server._followers.values()
    return log_follower


def test_a_reader_that_takes_nothing_is_pushed_no_more_and_lacks_nothing_later(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with hosted(tmp_path) as (log, server):
            lsns = appended(log, "a", BIG)
            with socket.socket(socket.AF_UNIX) as reader:
                reader.connect(str(tmp_path / "s"))
                reader.sendall(encoded_message([0, "subscribe", 1, ["a"], 0]))
                log_follower = await only_follower(server)
                await until(lambda: not log_follower.has_room)
                assert log_follower.subscription.after == lsns[follower.PUSHES_MAX - 1]
                got = await asyncio.to_thread(received, reader)
            assert [entry.head.lsn for entry in got] == lsns

    asyncio.run(story())


def received(reader: socket.socket) -> list[Entry]:
    decoder, got = MessageDecoder(), list[Entry]()
    while len(got) < COUNT:
        for _, _, entries in decoder.feed(reader.recv(1 << 20)):
            got += decode_entries(entries)
    return got


def test_a_paused_task_has_the_log_hold_and_gets_the_rest_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = encode(Rows(1, [(1, 10, 1, 1, 1)]))
    monkeypatch.setattr(
        task_module, "WAITING_BYTES_MAX", 3 * (task_module.WAITING_BYTES + len(rows))
    )

    async def story() -> None:
        async with hosted(tmp_path) as (log, server):
            client = await LogClient.open(tmp_path / "s")
            task = MarkerRun(GRAPH, Task("r", "mean", 0), client, Timing(1.0), SYSTEM_CLOCK, "one")
            task.pause()
            await task.recover()
            lsns = appended(log, IN, rows, 3)
            log_follower = await only_follower(server)
            await until(lambda: log_follower._is_held)
            lsns += appended(log, IN, rows)
            # Only what it was waiting for when it was told may still come.
            assert log_follower.subscription.after <= lsns[3]
            task.resume()
            await until(lambda: task._inputs.saved().position == lsns[-1])
            assert not log_follower._is_held
            client.close()

    asyncio.run(story())


def test_what_cannot_be_read_any_more_ends_the_connection_with_the_reason(tmp_path: Path) -> None:
    async def story() -> None:
        async with hosted(tmp_path) as (log, _):
            log.run(TrimTag("a", appended(log, "a", b"x")[-1]))
            client = await LogClient.open(tmp_path / "s")
            client.check()
            await client.subscribe(("a",), 0, lambda entries: None)
            await asyncio.wait_for(client.lost, 60)
            with pytest.raises(BadCall, match="the tag 'a' is trimmed"):
                client.check()

    asyncio.run(story())


def test_nothing_is_read_on_behalf_of_a_caller_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with hosted(tmp_path) as (log, server):
            client = await LogClient.open(tmp_path / "s")
            await client.subscribe(("a",), 0, lambda entries: None)
            gone = await only_follower(server)
            client.close()
            await until(lambda: gone.subscription.is_closed)
            monkeypatch.setattr(gone.subscription, "next", lambda timeout_s: pytest.fail("a read"))
            entries: list[Entry] = []
            other = await LogClient.open(tmp_path / "s")
            await other.subscribe(("a",), 0, entries.extend)
            assert gone not in server._followers.values()
            lsns = appended(log, "a", b"x")
            await until(lambda: [entry.head.lsn for entry in entries] == lsns)
            other.close()

    asyncio.run(story())


def test_calls_from_other_threads_wake_the_loop_once_and_come_in_order() -> None:
    async def story() -> None:
        loop, seen, woken = asyncio.get_running_loop(), list[int](), list[object]()
        wake = loop.call_soon_threadsafe
        calls = LoopCalls(loop)

        def counted(call: Callable[[], object]) -> None:
            woken.append(call)
            wake(call)

        def put_all() -> None:
            for number in range(50):
                calls.put(partial(seen.append, number))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "call_soon_threadsafe", counted)
            thread = threading.Thread(target=put_all)
            thread.start()
            thread.join()  # the loop is held up meanwhile
            assert len(woken) == 1
        await until(lambda: len(seen) == 50)
        assert seen == list(range(50))
        calls.put(partial(seen.append, 50))
        await until(lambda: len(seen) == 51)

    asyncio.run(story())


def test_a_worker_whose_input_cannot_be_read_ends_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gc.freeze", lambda: None)  # of this process, which is not a worker's

    async def story() -> None:
        async with hosted(tmp_path) as (log, _):
            log.run(TrimTag(IN, appended(log, IN, b"x")[-1]))
            job = WorkerJob("q4", "r", "marker", [("mean", 0, 0.0)], str(tmp_path / "s"), 60_000)
            with pytest.raises(BadCall, match=f"the tag '{IN}' is trimmed"):
                await asyncio.wait_for(work(job), 60)

    asyncio.run(story())
