"""`aligned`: a barrier flows through the whole graph, and state is kept where it passes.

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
import os
from collections.abc import Sequence
from pathlib import Path

from penstock.clock import Clock
from penstock.log.contract import Entry
from penstock.model.ids import Instance
from penstock_lab.baselines.task_graph.graph import Graph, Task
from penstock_lab.baselines.task_graph.log_client import Port
from penstock_lab.baselines.task_graph.messages import Barrier, Rows, decode, encode
from penstock_lab.baselines.task_graph.protocols.transaction import Coordinated
from penstock_lab.baselines.task_graph.task import TaskRun, Timing

SOURCES = ""


class Store:
    """Checkpoints as files of a folder, each whole or not there, durable when `keep` returns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, task: str, epoch: int, snapshot: bytes) -> None:
        """Keep this one and the one before it, which may be the last complete one."""
        path = self._path(task, epoch)
        part = path.with_suffix(".part")
        with part.open("wb") as out:
            out.write(snapshot)
            out.flush()
            os.fsync(out.fileno())
        part.rename(path)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._path(task, epoch - 2).unlink(missing_ok=True)

    def load(self, task: str, epoch: int) -> bytes:
        return self._path(task, epoch).read_bytes()

    def _path(self, task: str, epoch: int) -> Path:
        return self._folder / f"{task}.{epoch}"


class AlignedRun(TaskRun):
    """A task of a graph whose checkpoints are aligned."""

    def __init__(
        self,
        graph: Graph,
        task: Task,
        port: Port,
        timing: Timing,
        clock: Clock,
        coordinator: Coordinated,
        store: Store,
    ) -> None:
        super().__init__(graph, task, port, timing, clock)
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
        await self.port.subscribe((self.in_tag,), after, self.receive)
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
            found = decode(entry.payload)
            if isinstance(found, Rows):
                self.process_rows(found, head.producer)
                continue
            assert isinstance(found, Barrier)  # nothing else is on a substream
            self._passed.add(channel)
            if len(self._passed) >= max(1, len(self.producers)):
                self.pause()
                self.put_back([*self._held_back, *entries[place + 1 :]])
                self._held_back = []
                self._passing = asyncio.ensure_future(self._pass_barrier(found))
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
