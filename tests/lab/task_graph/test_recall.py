"""Tasks whose input waits for a marker longer than they can remember it: it is read again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.clock import SYSTEM_CLOCK
from penstock.errors import BadCall
from penstock.log.raw.classify import Bounds
from penstock.model.ids import Instance, Lsn
from penstock.model.task_records import Progress, encode_control
from penstock_lab.baselines.task_graph import q4
from penstock_lab.baselines.task_graph.graph import Task
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import Rows, encode
from penstock_lab.baselines.task_graph.protocols.marker import MarkerRun
from penstock_lab.baselines.task_graph.reader import Reader
from penstock_lab.baselines.task_graph.task import Timing
from support.log.raw_log import run, until

GRAPH = q4.graph(tasks=1)
TASK = Task("r", "mean", 0)
IN, OUT = GRAPH.tags("r", "rises")[0], GRAPH.tags("r", "q4")[0]
PRICES = range(1, 13)
BOUNDS = {
    "room for all": Bounds(),
    "no room for payloads": Bounds(unknown_bytes_max=1),
    "room for three entries": Bounds(unknown_max=3),
    "room for one entry": Bounds(unknown_max=1),
}


def task(client: LogClient, name: str, bounds: Bounds) -> MarkerRun:
    made = MarkerRun(GRAPH, TASK, client, Timing(1.0), SYSTEM_CLOCK, name)
    made.bounds = bounds
    return made


def rows(price: int) -> bytes:
    return encode(Rows(price, [(price, 10, price, 1, price)]))


async def produce(client: LogClient, producer: str, prices: list[int], first: int) -> None:
    """Rows that wait for the marker of their producer."""
    for seq, price in enumerate(prices, first):
        await client.append((IN,), rows(price), producer=producer, instance=Instance(1), seq=seq)


async def mark(client: LogClient, producer: str, first: int, last: int) -> Lsn:
    marker = Progress(producer, Instance(1), first, last, {})
    return await client.append(
        (IN,), encode_control(marker), producer=producer, instance=Instance(1)
    )


async def answered(client: LogClient, bounds: Bounds) -> list[list[int]]:
    """Two producers by turns, and rows that count at once before, between and after them."""
    reader, first_task = Reader("marker", SYSTEM_CLOCK), task(client, "one", bounds)
    await client.subscribe((OUT,), 0, reader.receive)
    await first_task.recover()
    await client.append((IN,), rows(100))
    for price in PRICES:
        await produce(client, f"p{price % 2}", [price], price)
    await mark(client, "p0", 1, 12)
    await client.append((IN,), rows(200))
    await mark(client, "p1", 1, 11)
    last = await client.append((IN,), rows(300))
    await until(lambda: first_task._inputs.saved().first > last and first_task._reading is None)
    await first_task.commit()
    await until(lambda: reader.rows == len(PRICES) + 3)
    return [row for seen in reader.seen for row in seen.rows]


@pytest.mark.parametrize("room", BOUNDS)
def test_what_there_was_no_room_for_counts_once_and_in_its_place(room: str, tmp_path: Path) -> None:
    answers: dict[str, list[list[int]]] = {}

    def story(name: str, folder: Path) -> None:
        async def tell(client: LogClient) -> None:
            answers[name] = await answered(client, BOUNDS[name])

        folder.mkdir()
        run(folder, tell)

    story("room for all", tmp_path / "all")
    story(room, tmp_path / "room")
    assert answers[room] == answers["room for all"]


def test_a_commit_waits_for_what_is_being_read_again(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        first_task = task(client, "one", Bounds(unknown_max=1))
        await first_task.recover()
        await produce(client, "p", [1, 2, 3, 4], 1)
        marked = await mark(client, "p", 1, 4)
        await until(lambda: first_task._reading is not None or first_task.is_dirty)
        await first_task.commit()
        await until(lambda: first_task.commits == 1)
        # All of what the marker covers, and its place as the position.
        new = task(client, "new", Bounds(unknown_max=1))
        await new.recover()
        assert new._inputs.saved().position == marked
        assert new.state.snapshot() == first_task.state.snapshot()
        await asyncio.sleep(0.05)
        assert not new.is_dirty, "nothing of it counts a second time"

    run(tmp_path, story)


def test_a_change_log_with_longer_spans_than_there_is_room_for_is_replayed(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        first_task = task(client, "one", Bounds())
        await first_task.recover()
        for number in range(1, 7):
            await client.append((IN,), rows(number))
            await until(lambda: first_task.is_dirty)
            first_task.send_all()
            first_task.is_dirty = number == 6
        await first_task.commit()
        for bounds in BOUNDS.values():
            new = task(client, f"new {bounds}", bounds)
            await new.recover()
            assert new.changes_replayed >= 6
            assert new.state.snapshot() == first_task.state.snapshot()

    run(tmp_path, story)


def test_a_read_that_fails_ends_the_task_with_its_reason(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        first_task = task(client, "one", Bounds(unknown_bytes_max=1))
        await first_task.recover()

        async def gone(lsn: Lsn) -> None:
            raise BadCall(f"there is no entry {lsn}", code="unknown_entries")

        first_task.log.entry = gone  # type: ignore[method-assign, assignment]
        await produce(client, "p", [1], 1)
        await mark(client, "p", 1, 1)
        await until(lambda: first_task._reading is not None)
        with pytest.raises(BadCall, match="there is no entry"):
            await first_task.commit()

    run(tmp_path, story)
