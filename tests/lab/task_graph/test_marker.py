"""A task with markers over a real log, in one process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.clock import SYSTEM_CLOCK
from penstock.errors import Fenced
from penstock.log.contract import Entry
from penstock_lab.baselines.task_graph import q4
from penstock_lab.baselines.task_graph.graph import Task
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import Rows, TaskMark, decode_task_log, encode
from penstock_lab.baselines.task_graph.protocols.marker import MarkerRun
from penstock_lab.baselines.task_graph.reader import Reader
from penstock_lab.baselines.task_graph.task import Timing
from support.log.raw_log import run, until

GRAPH = q4.graph(tasks=1)
TASK = Task("r", "mean", 0)
IN, OUT = GRAPH.tags("r", "rises")[0], GRAPH.tags("r", "q4")[0]


def task(client: LogClient, run: str) -> MarkerRun:
    return MarkerRun(GRAPH, TASK, client, Timing(1.0), SYSTEM_CLOCK, run)


async def rise(client: LogClient, price: int) -> None:
    """A row of the input that counts by itself."""
    await client.append((IN,), encode(Rows(price, [(price, 10, price, 1, price)])))


def watched() -> Reader:
    return Reader("marker", SYSTEM_CLOCK)


def numbers(reader: Reader) -> list[int]:
    return [row[2] for seen in reader.seen for row in seen.rows]


def test_rows_are_visible_with_their_marker_and_not_before(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        reader, first_task = watched(), task(client, "one")
        await client.subscribe((OUT,), 0, reader.receive)
        await first_task.recover()
        await rise(client, 5)
        await until(lambda: first_task.is_dirty)
        first_task.send_all()
        await first_task.sent()
        await asyncio.sleep(0.05)
        assert numbers(reader) == []
        await first_task.commit()
        await until(lambda: numbers(reader) == [1])

    run(tmp_path, story)


def test_an_older_instance_is_fenced_and_what_it_left_is_never_seen(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        reader, old, new = watched(), task(client, "old"), task(client, "new")
        await client.subscribe((OUT,), 0, reader.receive)
        await old.recover()
        await rise(client, 5)
        await until(lambda: old.is_dirty)
        await old.commit()
        await rise(client, 7)
        await until(lambda: old.is_dirty)
        await new.recover()
        assert new.instance == old.instance + 1
        with pytest.raises(Fenced, match="has a newer instance than 1"):
            await old.commit()
        await until(lambda: new.is_dirty)
        await new.commit()
        await until(lambda: numbers(reader) == [1, 2])

    run(tmp_path, story)


def test_a_new_instance_has_the_state_of_the_last_marker(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        first_task = task(client, "one")
        await first_task.recover()
        for price in (5, 7):
            await rise(client, price)
            await until(lambda: first_task.is_dirty)
            await first_task.commit()
        kept = dict(first_task.state.table("total"))
        await rise(client, 9)
        await until(lambda: first_task.is_dirty)
        two = task(client, "two")
        two.pause()  # the third row is there to be read and must not be in the state yet
        await two.recover()
        assert {key: tuple(value) for key, value in two.state.table("total").items()} == kept
        assert two.changes_replayed == 4  # a total and a clock of each commit

    run(tmp_path, story)


def test_a_checkpoint_named_by_a_marker_saves_reading_what_is_before_it(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        first_task = task(client, "one")
        await first_task.recover()
        for price in (5, 7, 9):
            await rise(client, price)
            await until(lambda: first_task.is_dirty)
            await first_task.commit()
            if price == 7:
                await first_task.checkpoint()
        last = decode_task_log((await client.entry(await client.tail(TASK.log_tag))).payload)
        assert isinstance(last, TaskMark)
        assert last.checkpoint
        two = task(client, "two")
        await two.recover()
        assert two.changes_replayed == 2
        assert tuple(two.state.table("total")[10]) == (21, 3, 3)

    run(tmp_path, story)


def test_a_checkpoint_that_no_marker_names_is_not_needed(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        first_task = task(client, "one")
        await first_task.recover()
        await rise(client, 5)
        await until(lambda: first_task.is_dirty)
        await first_task.commit()
        await first_task.checkpoint()
        two, three = task(client, "two"), task(client, "three")
        await two.recover()
        await three.recover()  # two claims in a row, with no marker between them
        for again in (two, three):
            assert tuple(again.state.table("total")[10]) == (5, 1, 1)

    run(tmp_path, story)


def test_a_marker_has_every_tag_that_must_see_it(tmp_path: Path) -> None:
    async def story(client: LogClient) -> None:
        seen: list[Entry] = []
        first_task = task(client, "one")
        await client.subscribe((TASK.log_tag,), 0, seen.extend)
        await first_task.recover()
        await rise(client, 5)
        await until(lambda: first_task.is_dirty)
        await first_task.commit()
        await until(lambda: len(seen) == 2)
        assert set(seen[1].head.tags) == {OUT, TASK.log_tag, TASK.changes_tag}

    run(tmp_path, story)
