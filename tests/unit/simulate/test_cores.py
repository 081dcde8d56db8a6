"""Simulated cores: who gets one, in which order, and how long tasks take."""

from __future__ import annotations

import random
from collections.abc import Sequence

from penstock.simulate.cores import Cores, TaskSet
from penstock.simulate.events import Events
from penstock.simulate.ordering import order_named
from penstock.simulate.world import NO_LUCK, Cluster, Luck


class Table:
    """Cores, and the times at which task sets were done."""

    def __init__(self, cluster: Cluster, order: str = "fifo") -> None:
        self.events = Events()
        self.cores = Cores(cluster, order_named(order), self.events, random.Random(1))
        self.done: dict[int, float] = {}

    def submit(
        self, number: int, tasks: Sequence[float], due_ms: float | None = None, at_ms: float = 0.0
    ) -> None:
        task_set = TaskSet(
            number=number,
            job=number,
            stage=0,
            query=number,
            deadline_at_ms=due_ms,
            arrived_at_ms=at_ms,
            weight=1.0,
            durations_ms=list(tasks),
            when_done=lambda: self.done.__setitem__(number, self.events.now_ms),
        )
        self.events.at(at_ms, lambda: self.cores.submit(task_set))

    def run(self) -> dict[int, float]:
        self.events.run(1e9)
        return self.done


def test_tasks_share_the_cores_and_the_rest_waits() -> None:
    """Two cores: 0 has both until 10 and one until 20, 1 gets the other at 10.

    core 0   |0000000000|0000000000|
    core 1   |0000000000|1111111111|
    """
    table = Table(Cluster(1, 2, NO_LUCK))
    table.submit(0, [10, 10, 10])
    table.submit(1, [10])
    assert table.run() == {0: 20, 1: 20}
    assert table.cores.use.busy_ms == 40
    assert table.cores.use.waits_by_query == {0: 0, 1: 10}


def test_the_earliest_deadline_goes_first_but_a_running_task_is_not_preempted() -> None:
    """One core: 0 has begun when 2, the most urgent, comes; then 2, then 1.

    |0000000000|22222|11111|
    """
    table = Table(Cluster(1, 1, NO_LUCK), "edf")
    table.submit(0, [10], due_ms=1_000)
    table.submit(1, [5], due_ms=500, at_ms=1)
    table.submit(2, [5], due_ms=50, at_ms=2)
    assert table.run() == {0: 10, 2: 15, 1: 20}


def test_all_that_is_submitted_at_one_moment_is_there_when_cores_are_offered() -> None:
    table = Table(Cluster(1, 1, NO_LUCK), "edf")
    table.submit(0, [10], due_ms=100)
    table.submit(1, [10], due_ms=50)
    assert table.run() == {1: 10, 0: 20}


def test_fair_gives_the_core_to_whoever_has_fewest() -> None:
    """Two cores, 0 takes both; as they free, 1 has none and gets the first, then they share."""
    table = Table(Cluster(1, 2, NO_LUCK), "fair")
    table.submit(0, [10, 12, 10, 10])
    table.submit(1, [10, 10], at_ms=1)
    assert table.run() == {1: 30, 0: 32} or table.done == {1: 20, 0: 32}


def test_a_slow_worker_and_a_straggler_take_longer() -> None:
    slow = Table(Cluster(2, 1, Luck(spread=0, slow_workers=1, slow_factor=2)))
    slow.submit(0, [10, 10])
    assert slow.run() == {0: 20}
    straggler = Table(Cluster(1, 1, Luck(spread=0, straggler_share=1, straggler_factor=4)))
    straggler.submit(0, [10])
    assert straggler.run() == {0: 40}
