"""Tasks of the protocol `transaction`: that of Kafka Streams, with a coordinator as a process.

Phase one, in which the task waits:

1. register every substream that the transaction writes, with the coordinator, once the
   transaction before is complete; begun as soon as there is a first row for a substream;
2. append outputs, changes of state, and the offsets of the input, and wait until they are durable;
3. ask for the commit: the coordinator answers when its pre-commit record is durable.

Phase two is the coordinator's: a commit record on every registered substream, then its own last
record. The task goes on meanwhile, but the next transaction's registration waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from penstock.clock import Clock
from penstock.log.contract import Entry
from penstock.log.raw.classify import Classifier, Saved
from penstock.model.ids import Instance, Lsn
from penstock_lab.baselines.task_graph.graph import Graph, Task
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import Offsets, Row, decode, encode
from penstock_lab.baselines.task_graph.protocols.coordinator_client import CoordinatorClient
from penstock_lab.baselines.task_graph.replay import replay_changes
from penstock_lab.baselines.task_graph.task import TaskRun, Timing


class TransactionRun(TaskRun):
    """A task that commits with transactions."""

    def __init__(
        self,
        graph: Graph,
        task: Task,
        log: LogClient,
        timing: Timing,
        clock: Clock,
        coordinator: CoordinatorClient,
    ) -> None:
        super().__init__(graph, task, log, timing, clock)
        self._coordinator = coordinator
        self._inputs = Classifier(self.bounds)
        self._number = 1
        self._first = 1
        self._wanted: set[str] = set()
        """Substreams this transaction writes and has not asked to register."""
        self._registered: set[str] = set()
        self._registering: asyncio.Task[None] | None = None

    async def recover(self) -> None:
        instance, offsets, number = await self._coordinator.call("begin", self.task.name)
        self.instance, self._number = Instance(instance), number + 1
        saved = Saved()
        if offsets:
            offsets_entry = decode((await self.log.entry(Lsn(offsets))).payload)
            assert isinstance(offsets_entry, Offsets)  # the coordinator was told its place
            saved = Saved(offsets_entry.position, offsets_entry.reread, offsets_entry.seen)
            if self.is_stateful:
                tag = self.task.changes_tag
                until = await self.log.tail(tag)
                self.changes_replayed = await replay_changes(
                    self.log, tag, self.state, Lsn(0), until, self.bounds
                )
                self.restored()
        self._inputs = Classifier(self.bounds, saved)
        await self.log.subscribe((self.in_tag,), saved.first - 1, self.receive)

    def take(self, entries: Sequence[Entry]) -> None:
        self.take_settled(self._inputs, entries)

    def emit(self, key: int, row: Row) -> None:
        tag = self.out_tags[key % len(self.out_tags)]
        if tag not in self._registered and tag not in self._wanted:
            self._want(tag)
        super().emit(key, row)

    def may_send(self, substream: int) -> bool:
        return self.out_tags[substream] in self._registered

    def _want(self, *tags: str) -> None:
        if not self._registered and not self._wanted:
            # What every transaction writes comes with the first that needs to be registered.
            self._wanted.add(self.task.offsets_tag)
            if self.is_stateful:
                self._wanted.add(self.task.changes_tag)
        self._wanted.update(set(tags) - self._registered)
        if self._wanted and (self._registering is None or self._registering.done()):
            self._registering = asyncio.ensure_future(self._register())
            # The next commit raises what it failed with; a task that is over makes none.
            self._registering.add_done_callback(_take_exception)

    async def _register(self) -> None:
        while self._wanted:
            asked, self._wanted = self._wanted, set()
            await self._coordinator.call(
                "register", self.task.name, self.instance, self._number, sorted(asked)
            )
            self._registered |= asked

    async def commit(self) -> None:
        await self.caught_up()
        if not self.is_dirty:
            return
        self.pause()
        self.is_dirty = False
        saved = self._inputs.saved()
        self._want()
        if self._registering is not None:
            await self._registering
        self.send_all()
        offsets = encode(Offsets(saved.position, saved.first, saved.seen))
        self.send((self.task.offsets_tag,), offsets)
        place = await self.sent()
        await self._coordinator.call(
            "commit",
            self.task.name,
            self.instance,
            self._number,
            self._first,
            self.seq,
            place,
        )
        self._number += 1
        self._first = self.seq + 1
        self._registered.clear()
        self.commits += 1
        self.resume()


def _take_exception(ended: asyncio.Task[None]) -> None:
    """Marks the exception of a task as seen, so that nothing is logged when it is collected."""
    if not ended.cancelled():
        ended.exception()
