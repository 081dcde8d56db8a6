"""Both coordinators over a real log, in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.clock import SYSTEM_CLOCK
from penstock.errors import Fenced
from penstock.log.contract import Entry
from penstock.model.ids import Lsn
from penstock.model.task_records import Progress, decode_control
from penstock_lab.baselines.task_graph import q4
from penstock_lab.baselines.task_graph.graph import checkpoints_tag, transactions_tag
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import Completed, Restored, Step, decode
from penstock_lab.baselines.task_graph.protocols.aligned.barriers import Barriers, BarriersJob
from penstock_lab.baselines.task_graph.protocols.aligned.store import CheckpointStore
from penstock_lab.baselines.task_graph.protocols.transaction.coordinator import Coordinator
from support.log.raw_log import run

GRAPH = q4.graph()


async def said(client: LogClient, tag: str) -> Sequence[Entry]:
    return await client.page(tag, 1, await client.tail(tag))


async def steps(client: LogClient) -> list[str]:
    payloads = [decode(entry.payload) for entry in await said(client, transactions_tag("r"))]
    return [step.kind for step in payloads if isinstance(step, Step)]


async def commits(client: LogClient, tag: str) -> list[tuple[int, int, int]]:
    payloads = [decode_control(entry.payload) for entry in await said(client, tag)]
    return [
        (record.instance, record.first, record.last)
        for record in payloads
        if isinstance(record, Progress)
    ]


def test_every_step_is_in_the_log_and_every_substream_has_its_record(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        coordinator = Coordinator("r", client)
        assert await coordinator.begin("t") == (1, 0, 0)
        await coordinator.register("t", 1, 1, ["a", "b"])
        await coordinator.commit("t", 1, 1, 1, 5, 9)
        await coordinator.register("t", 1, 2, ["b"])  # waits for phase two of the first
        assert await steps(client) == ["begin", "register", "prepare", "done", "register"]
        assert await commits(client, "a") == await commits(client, "b") == [(1, 1, 5)]

    run(tmp_path, story)


def test_a_new_coordinator_finishes_what_was_prepared(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        coordinator = Coordinator("r", client)
        await coordinator.begin("t")
        await coordinator.register("t", 1, 1, ["a"])
        # Killed between the pre-commit record and phase two.
        step = coordinator._book.prepare("t", coordinator._book.line("t").instance, 1, 1, 3, Lsn(4))
        assert step is not None
        await coordinator._note(step)
        two = Coordinator("r", client)
        await two.recover()
        assert await two.begin("t") == (2, 4, 1)
        assert await commits(client, "a") == [(1, 1, 3)]

    run(tmp_path, story)


def test_a_new_instance_ends_what_the_old_one_had_open_and_fences_it(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        coordinator = Coordinator("r", client)
        await coordinator.begin("t")
        await coordinator.register("t", 1, 1, ["a"])
        assert await coordinator.begin("t") == (2, 0, 1)
        assert await commits(client, "a") == [(1, 1, 0)]  # commits nothing
        with pytest.raises(Fenced):
            await coordinator.commit("t", 1, 1, 1, 3, 4)

    run(tmp_path, story)


class Gate:
    """Holds back what is appended to the coordinator's stream until it is opened."""

    def __init__(self, client: LogClient) -> None:
        self._append, self._opened = client.append, asyncio.Event()
        self.is_reached = asyncio.Event()
        client.append = self.append  # type: ignore[method-assign]

    def append(self, tags: Sequence[str], *rest: Any, **named: Any) -> asyncio.Future[Lsn]:
        return asyncio.ensure_future(self._held(tags, *rest, **named))

    async def _held(self, tags: Sequence[str], *rest: Any, **named: Any) -> Lsn:
        if tuple(tags) == (transactions_tag("r"),):
            self.is_reached.set()
            await self._opened.wait()
        return await self._append(tags, *rest, **named)

    async def open(self) -> None:
        """After everything that can go on without it has."""
        for _ in range(100):
            await asyncio.sleep(0)
        self._opened.set()


def test_an_old_instance_cannot_commit_while_a_new_one_begins(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        coordinator = Coordinator("r", client)
        await coordinator.begin("t")
        await coordinator.register("t", 1, 1, ["a"])
        gate = Gate(client)
        begun = asyncio.ensure_future(coordinator.begin("t"))
        await gate.is_reached.wait()
        committed = asyncio.ensure_future(coordinator.commit("t", 1, 1, 1, 3, 4))
        await gate.open()
        assert await begun == (2, 0, 1)
        with pytest.raises(Fenced):
            await committed
        assert await commits(client, "a") == [(1, 1, 0)]

    run(tmp_path, story)


def test_a_new_instance_begins_after_what_is_being_prepared(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        coordinator = Coordinator("r", client)
        await coordinator.begin("t")
        await coordinator.register("t", 1, 1, ["a"])
        gate = Gate(client)
        committed = asyncio.ensure_future(coordinator.commit("t", 1, 1, 1, 3, 4))
        await gate.is_reached.wait()
        begun = asyncio.ensure_future(coordinator.begin("t"))
        await gate.open()
        await committed
        assert await begun == (2, 4, 1), "what was prepared is not processed again"
        assert await steps(client) == ["begin", "register", "prepare", "done", "begin"]
        assert await commits(client, "a") == [(1, 1, 3)]

    run(tmp_path, story)


def test_a_recovery_reads_no_more_however_many_transactions_were_finished(tmp_path: Path) -> None:
    every = 10

    async def story(client: LogClient) -> None:
        coordinator = Coordinator("r", client, every)
        for task in ("quiet", "open", "t"):
            await coordinator.begin(task)
        await coordinator.register("quiet", 1, 1, ["q"])
        await coordinator.commit("quiet", 1, 1, 1, 2, 7)
        await coordinator.register("open", 1, 1, ["o"])
        await coordinator.register("open", 1, 1, ["p"])
        for number in range(1, 101):
            await coordinator.register("t", 1, number, ["a"])
            await coordinator.commit("t", 1, number, number, number, number)
        await coordinator.begin("t")  # after what was committed behind it
        while coordinator._trimming is not None and not coordinator._trimming.done():
            await coordinator._trimming
        two, read = Coordinator("r", client, every), list[Entry]()
        page = client.page

        async def counted(*asked: Any) -> list[Entry]:
            entries = await page(*asked)
            read.extend(entries)
            return entries

        client.page = counted  # type: ignore[method-assign, assignment]
        await two.recover()
        assert 0 < len(read) <= 3 * every, "of some 300"
        assert await two.begin("t") == (3, 100, 100)
        assert await two.begin("quiet") == (2, 7, 1)
        assert await two.begin("open") == (2, 0, 1)
        for tag in ("o", "p"):
            assert await commits(client, tag) == [(1, 1, 0)], "what was left open is ended"

    run(tmp_path, story)


class Caller:
    """Takes the answers of calls that need no socket."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def answer(self, number: int, value: Any) -> None:
        self.answers.append(value)


def call(barriers: Barriers, name: str, *arguments: Any) -> Any:
    caller = Caller()
    barriers.handle(caller, 1, name, list(arguments))  # type: ignore[arg-type]
    return caller.answers[0]


def barriers(client: LogClient) -> Barriers:
    return Barriers(GRAPH, BarriersJob("q4", "r", "", "", 5.0), client, SYSTEM_CLOCK)


async def epochs(client: LogClient) -> list[tuple[str, int]]:
    payloads = [decode(entry.payload) for entry in await said(client, checkpoints_tag("r"))]
    return [
        (type(payload).__name__, payload.epoch)
        for payload in payloads
        if isinstance(payload, Completed | Restored)
    ]


def test_a_checkpoint_is_complete_when_every_task_has_kept_its_state(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        attempt = barriers(client)
        await attempt.restore()
        names = [task.name for task in GRAPH.tasks("r")]
        for name in names:
            call(attempt, "ready", name)
        running = asyncio.ensure_future(attempt.run())
        for name in names[:-1]:
            call(attempt, "keep", name, 1, 1)
        await asyncio.sleep(0.05)
        assert await epochs(client) == [("Restored", 0)]
        call(attempt, "keep", names[-1], 1, 2)  # of another checkpoint
        call(attempt, "keep", names[-1], 2, 1)  # of another attempt
        await asyncio.sleep(0.02)
        assert await epochs(client) == [("Restored", 0)]
        while ("Completed", 1) not in await epochs(client):
            for name in names:
                call(attempt, "keep", name, 1, 1)
        assert await epochs(client) == [("Restored", 0), ("Completed", 1)]
        running.cancel()

    run(tmp_path, story)


def test_a_new_attempt_goes_on_at_the_last_complete_checkpoint_and_fences_the_old(
    tmp_path: Path,
) -> None:
    async def story(client: LogClient) -> None:
        old, new = barriers(client), barriers(client)
        await old.restore()
        await old._append(Completed(1, Lsn(7)))
        await new.restore()
        attempt, epoch, barrier, _ = call(new, "join", "t")
        assert (attempt, epoch, barrier) == (2, 1, 7)
        with pytest.raises(Fenced, match="a newer attempt than 1"):
            await old._append(Completed(2, Lsn(9)))

    run(tmp_path, story)


def test_the_store_keeps_a_checkpoint_and_the_one_before_it(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "store")
    for epoch in (1, 2, 3):
        store.keep("t", epoch, b"%d" % epoch)
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["t.2", "t.3"]
    assert store.load("t", 2) == b"2"
