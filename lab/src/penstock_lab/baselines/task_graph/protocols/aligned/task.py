"""Tasks of the protocol `aligned`: a barrier flows through the graph; state is kept where it is.

Rows count for the next stage as soon as they are there; only the answer waits, until the checkpoint
is complete. A task takes a barrier when it has come on every input; until then it holds back what
follows it on the others. Then

1. what is buffered is sent and durable, and the barrier follows on every output substream;
2. the state goes to the checkpoint store, as a file that is synced, while the task goes on;
3. the coordinator is told.

After a kill the whole graph goes back to the last complete checkpoint, as a new attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from penstock.clock import Clock
from penstock.log.contract import Entry
from penstock.model.ids import Instance
from penstock_lab.baselines.task_graph.graph import Graph, Task
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import Barrier, Rows, decode, encode
from penstock_lab.baselines.task_graph.protocols.aligned.store import CheckpointStore
from penstock_lab.baselines.task_graph.protocols.coordinator_client import CoordinatorClient
from penstock_lab.baselines.task_graph.task import TaskRun, Timing

SOURCES = ""


class AlignedRun(TaskRun):
    """A task of a graph whose checkpoints are aligned."""

    def __init__(
        self,
        graph: Graph,
        task: Task,
        log: LogClient,
        timing: Timing,
        clock: Clock,
        coordinator: CoordinatorClient,
        store: CheckpointStore,
    ) -> None:
        super().__init__(graph, task, log, timing, clock)
        self._coordinator = coordinator
        self._store = store
        self._next_epoch = 1
        self._passed: set[str] = set()
        """Producers whose barrier has come."""
        self._held_back: list[Entry] = []
        self._passing: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()

    @property
    def epoch(self) -> int:
        return self._next_epoch

    async def recover(self) -> None:
        attempt, epoch, barrier, restored = await self._coordinator.call("join", self.task.name)
        self.instance, self._next_epoch = Instance(attempt), epoch + 1
        if epoch and self.is_stateful:
            self.state.restore(self._store.load(self.task.name, epoch))
            self.restored()
        # Between stages nothing older than this attempt counts; the sources go on at the barrier.
        after = restored if self.producers else barrier
        await self.log.subscribe((self.in_tag,), after, self.receive)
        await self._coordinator.call("ready", self.task.name)

    def take(self, entries: Sequence[Entry]) -> None:
        for place, entry in enumerate(entries):
            head = entry.head
            is_source_row = not self.producers and head.instance is None
            if not is_source_row and head.instance != self.instance:
                continue  # an earlier attempt left it
            channel = (head.producer or SOURCES) if self.producers else SOURCES
            if channel in self._passed:
                self._held_back.append(entry)
                continue
            message = decode(entry.payload)
            if isinstance(message, Rows):
                self.process_rows(message, head.producer)
                continue
            assert isinstance(message, Barrier)  # nothing else is on a substream
            self._passed.add(channel)
            if len(self._passed) >= max(1, len(self.producers)):
                self.pause()
                self.put_back([*self._held_back, *entries[place + 1 :]])
                self._held_back = []
                self._passing = asyncio.ensure_future(self._pass_barrier(message))
                return

    async def _pass_barrier(self, barrier: Barrier) -> None:
        async with self._sending:
            self.send_outputs()
            await self.sent()
            self.send(self.out_tags, encode(barrier))
            await self.sent()
        self.state.take_changes()  # a snapshot holds everything
        snapshot = self.state.snapshot() if self.is_stateful else None
        self._keeping = asyncio.ensure_future(self._keep(barrier.epoch, snapshot))
        self._next_epoch = barrier.epoch + 1
        self._passed.clear()
        # Checkpoints come whether there are rows or not; those without are not counted.
        self.commits += self.is_dirty
        self.is_dirty = False
        self.resume()

    async def _keep(self, epoch: int, snapshot: bytes | None) -> None:
        if snapshot is not None:
            await asyncio.to_thread(self._store.keep, self.task.name, epoch, snapshot)
        await self._coordinator.call("keep", self.task.name, self.instance, epoch)

    async def commit(self) -> None:
        """Rows go on every interval, barrier or not; only the answer waits for the checkpoint."""
        for under_way in (self._passing, self._keeping):
            if under_way is not None and under_way.done():
                under_way.result()  # a failure there ends the task
        if not self._sending.locked():
            async with self._sending:
                self.send_outputs()
                await self.sent()
