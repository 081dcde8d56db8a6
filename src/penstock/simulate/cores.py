"""The cores of the simulated cluster: task sets in order, tasks that are not preempted."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from penstock.simulate.events import Act, Events
from penstock.simulate.world import Cluster


@dataclass(eq=False)
class TaskSet:
    """The tasks of one stage of one batch, as Spark's scheduler sees them."""

    number: int
    """Counts task sets in the order of submission."""
    job: int
    """Counts batches of all queries, as Spark numbers its jobs."""
    stage: int
    query: int
    deadline_at_ms: float | None
    arrived_at_ms: float
    weight: float
    durations_ms: list[float]
    """Of tasks that have not started; taken from the end."""
    when_done: Act
    submitted_at_ms: float = 0.0
    started_at_ms: float | None = None
    running: int = 0
    core_ms: float = 0.0
    longest_task_ms: float = 0.0
    view: object = None
    """Kept by the order between two offers."""

    @property
    def waits(self) -> bool:
        return bool(self.durations_ms)


Order: TypeAlias = Callable[[Sequence[TaskSet], float], Sequence[TaskSet]]
"""Task sets that wait for cores, and the time: whose tasks are offered cores first."""


@dataclass
class Use:
    """The use of the cores so far."""

    busy_ms: float = 0.0
    tasks: int = 0
    longest_wait_ms: float = 0.0
    waits_by_query: dict[int, float] = field(default_factory=dict)
    """The longest time that a task set of the query waited for its first core."""


class Cores:
    """Free cores by worker, and the task sets that wait for one."""

    def __init__(self, cluster: Cluster, order: Order, events: Events, luck: random.Random) -> None:
        self._cluster = cluster
        self._order = order
        self._events = events
        self._luck = luck
        self._free = [cluster.cores_per_worker] * cluster.workers
        self._free_cores = cluster.cores
        self._waiting: list[TaskSet] = []
        self._is_offering = False
        self.use = Use()

    def submit(self, task_set: TaskSet) -> None:
        task_set.submitted_at_ms = self._events.now_ms
        self._waiting.append(task_set)
        # As in Spark, where submission sends a message: all that is submitted at one moment is
        # there when cores are offered.
        if not self._is_offering:
            self._is_offering = True
            self._events.after(0.0, self._offer)

    def _offer(self) -> None:
        """Give free cores away: the first task set in order takes all it can, then the next."""
        self._is_offering = False
        if not self._free_cores or not self._waiting:
            return
        tasks = sum(len(task_set.durations_ms) for task_set in self._waiting)
        ordered: Sequence[TaskSet] = self._waiting
        if tasks > self._free_cores:
            ordered = self._order(self._waiting, self._events.now_ms)
        for task_set in ordered:
            while self._free_cores and task_set.durations_ms:
                self._start(task_set)
            if not self._free_cores:
                break
        self._waiting = [task_set for task_set in self._waiting if task_set.waits]

    def _start(self, task_set: TaskSet) -> None:
        worker = self._free.index(max(self._free))
        luck = self._cluster.luck
        took_ms = task_set.durations_ms.pop()
        if worker < luck.slow_workers:
            took_ms *= luck.slow_factor
        if luck.straggler_share and self._luck.random() < luck.straggler_share:
            took_ms *= luck.straggler_factor
        self._free[worker] -= 1
        self._free_cores -= 1
        task_set.running += 1
        now_ms = self._events.now_ms
        if task_set.started_at_ms is None:
            task_set.started_at_ms = now_ms
            waited_ms = now_ms - task_set.submitted_at_ms
            waits = self.use.waits_by_query
            waits[task_set.query] = max(waits.get(task_set.query, 0.0), waited_ms)
            self.use.longest_wait_ms = max(self.use.longest_wait_ms, waited_ms)
        task_set.core_ms += took_ms
        task_set.longest_task_ms = max(task_set.longest_task_ms, took_ms)
        self.use.busy_ms += took_ms
        self.use.tasks += 1
        self._events.after(took_ms, partial(self._end, task_set, worker))

    def _end(self, task_set: TaskSet, worker: int) -> None:
        self._free[worker] += 1
        self._free_cores += 1
        task_set.running -= 1
        # As in Spark: the freed core is offered before the next stage is known.
        self._offer()
        if not task_set.running and not task_set.waits:
            task_set.when_done()
