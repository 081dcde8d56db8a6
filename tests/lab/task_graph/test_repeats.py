"""Tasks whose input holds a row twice, because the log's memory was shorter than a sender's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import pytest

from penstock.clock import SYSTEM_CLOCK
from penstock.log.contract import Entry
from penstock_lab.baselines.task_graph import q4
from penstock_lab.baselines.task_graph.graph import Task
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import Rows, encode
from penstock_lab.baselines.task_graph.protocols.coordinator_client import CoordinatorClient
from penstock_lab.baselines.task_graph.protocols.marker import MarkerRun
from penstock_lab.baselines.task_graph.protocols.transaction.coordinator import Coordinator
from penstock_lab.baselines.task_graph.protocols.transaction.task import TransactionRun
from penstock_lab.baselines.task_graph.task import TaskRun, Timing
from support.log.raw_log import run, until

GRAPH = q4.graph(tasks=1)
TASK = Task("r", "mean", 0)
IN = GRAPH.tags("r", "rises")[0]


class Called:
    """A coordinator in the process of its caller."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def call(self, name: str, *arguments: object) -> object:
        return await getattr(self._coordinator, name)(*arguments)


def marking(client: LogClient) -> Callable[[str], TaskRun]:
    return lambda name: MarkerRun(GRAPH, TASK, client, Timing(1.0), SYSTEM_CLOCK, name)


def transacting(client: LogClient) -> Callable[[str], TaskRun]:
    called = cast(CoordinatorClient, Called(Coordinator("r", client)))
    return lambda name: TransactionRun(GRAPH, TASK, client, Timing(1.0), SYSTEM_CLOCK, called)


async def sent(client: LogClient, seq: int) -> Entry:
    """A row that counts by itself, of a sender that numbers them."""
    payload = encode(Rows(seq, [(seq, 10, 100 + seq, 1, seq)]))
    return await client.entry(await client.append((IN,), payload, producer="sender", seq=seq))


async def again(client: LogClient, entry: Entry) -> Entry:
    """The same at a later place, which the log leaves free for it."""
    place = await client.append(("elsewhere",), b"")
    return msgspec.structs.replace(entry, head=msgspec.structs.replace(entry.head, lsn=place))


@pytest.mark.parametrize("protocol", [marking, transacting])
def test_a_repeat_counts_for_nothing_before_a_commit_and_after_a_recovery(
    protocol: Callable[[LogClient], Callable[[str], TaskRun]], tmp_path: Path
) -> None:
    async def story(client: LogClient) -> None:
        make = protocol(client)
        first_task = make("one")
        await first_task.recover()
        # Not in the order of their numbers: a sender that does not wait need not keep it.
        third, first = await sent(client, 3), await sent(client, 1)
        await until(lambda: total(first_task)[1:2] == [2])
        for entry in (third, first):
            first_task.take([await again(client, entry)])
        assert total(first_task)[1:2] == [2]
        await first_task.commit()
        two = make("two")
        await two.recover()
        for entry in (first, third):
            two.take([await again(client, entry)])
        assert not two.is_dirty
        await sent(client, 2)
        await until(lambda: two.is_dirty)
        assert total(two) == [100 + 1 + 100 + 2 + 100 + 3, 3]

    run(tmp_path, story)


def total(task: TaskRun) -> list[int]:
    """Of the prices, and how many."""
    return list(task.state.table("total").get(10, ()))[:2]
