"""The protocol `marker`: a conditional append commits a batch on all outputs and in the task's log.

1. send the outputs and the change log, and wait until they are durable;
2. append the marker, tagged with every output substream, the task log and the change log, on
   condition that the task log ends where this instance left it, which is the fence.

A new instance claims the task log first and finds the last marker there. Its state is the newest
checkpoint that marker names and the change log after it; its input goes on behind what the marker
says was consumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from penstock.clock import Clock
from penstock.errors import BadCall, Fenced, TryAgain
from penstock.log.contract import Entry
from penstock.log.raw.classify import Classifier, Saved
from penstock.model.ids import Instance, Lsn
from penstock_lab.baselines.task_graph.graph import Graph, Task
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import (
    Fence,
    Snapshot,
    TaskMark,
    decode_task_log,
    encode,
    encode_json,
)
from penstock_lab.baselines.task_graph.replay import load_snapshot, replay_changes
from penstock_lab.baselines.task_graph.task import RETRY_S, TaskRun, Timing

PART_BYTES = 512 << 10
_encode_aux = msgspec.msgpack.Encoder().encode
_decode_aux = msgspec.msgpack.Decoder(list[int]).decode


class MarkerRun(TaskRun):
    """A task that commits with progress markers."""

    def __init__(
        self, graph: Graph, task: Task, log: LogClient, timing: Timing, clock: Clock, run: str
    ) -> None:
        """`run` is a name that no other instance of the task has."""
        super().__init__(graph, task, log, timing, clock)
        self._run = run
        self._inputs = Classifier(self.bounds)
        self._log_end = Lsn(0)
        self._first = 1
        self._checkpoint = Lsn(0)
        self._checkpointed_s = clock.monotonic_s()
        self._checkpointing: asyncio.Task[None] | None = None

    async def recover(self) -> None:
        marker = await self._claim()
        saved = Saved()
        if marker:
            saved = await self._restore(marker)
        self._inputs = Classifier(self.bounds, saved)
        await self.log.subscribe((self.in_tag,), saved.first - 1, self.receive)

    async def _claim(self) -> Lsn:
        """Become the instance that may mark; the last marker of those before."""
        tag = self.task.log_tag
        while True:
            tail, instance, marker = await self.log.tail(tag), Instance(1), Lsn(0)
            if tail:
                last = decode_task_log((await self.log.entry(tail)).payload)
                instance = Instance(last.instance + 1)
                marker = tail if isinstance(last, TaskMark) else last.marker
                if isinstance(last, Fence) and last.run == self._run:
                    self._log_end, self.instance = tail, last.instance
                    return marker
            fence = encode_json(Fence(self.task.name, instance, self._run, marker=marker))
            # Whatever comes of it, the end of the task log says whose turn it is.
            await self._try_append((tag,), fence, tail, instance)

    async def _try_append(
        self, tags: Sequence[str], payload: bytes, end: Lsn, instance: Instance
    ) -> None:
        """Append if the task log ends there still; neither a refusal nor a doubt is raised."""
        try:
            await self.log.append(
                tags,
                payload,
                expect=(self.task.log_tag, end),
                producer=self.task.name,
                instance=instance,
            )
        except BadCall as error:
            if error.code != "conflict":
                raise
        except TryAgain as error:
            if error.code == "gone":
                raise
            await asyncio.sleep(RETRY_S)

    async def _restore(self, marker: Lsn) -> Saved:
        mark = decode_task_log((await self.log.entry(marker)).payload)
        assert isinstance(mark, TaskMark)  # the fence names markers only
        if self.is_stateful:
            if mark.checkpoint:
                aux = await self.log.aux(mark.checkpoint)
                assert aux is not None  # a marker names a checkpoint only once it is there
                await load_snapshot(self.log, _decode_aux(aux), self.state)
            self.changes_replayed = await replay_changes(
                self.log, self.task.changes_tag, self.state, mark.checkpoint, marker, self.bounds
            )
            self.restored()
        self._checkpoint = mark.checkpoint
        return Saved(mark.positions[self.in_tag], mark.reread, mark.seen)

    def take(self, entries: Sequence[Entry]) -> None:
        self.take_settled(self._inputs, entries)

    async def commit(self) -> None:
        await self.caught_up()
        if not self.is_dirty:
            return
        self.pause()
        self.is_dirty = False
        saved = self._inputs.saved()
        self.send_all()
        await self.sent()
        mark = TaskMark(
            self.task.name,
            self.instance,
            self._first,
            self.seq,
            {self.in_tag: saved.position},
            saved.first,
            self._checkpoint,
            saved.seen,
        )
        await self._mark(mark)
        self._first = self.seq + 1
        self.commits += 1
        self._maybe_checkpoint()
        self.resume()

    async def _mark(self, mark: TaskMark) -> None:
        """Append the marker; one that was refused may be there from an answer that was lost."""
        tag = self.task.log_tag
        tags = (*self.out_tags, tag, *((self.task.changes_tag,) if self.is_stateful else ()))
        payload, before = encode_json(mark), self._log_end
        while self._log_end == before:
            try:
                self._log_end = await self.log.append(
                    tags,
                    payload,
                    expect=(tag, before),
                    producer=self.task.name,
                    instance=self.instance,
                )
            except BadCall as error:
                if error.code != "conflict":
                    raise
                self._log_end = await self._own_end(payload)
            except TryAgain as error:
                if error.code == "gone":
                    raise
                await asyncio.sleep(RETRY_S)

    async def _own_end(self, payload: bytes) -> Lsn:
        """The end of the task log if it is this payload; else a newer instance has taken over."""
        tail = await self.log.tail(self.task.log_tag)
        if tail and (await self.log.entry(tail)).payload == payload:
            return tail
        raise Fenced(
            f"{self.task.name} has a newer instance than {self.instance}; this one ends",
            code="fenced",
        )

    def _maybe_checkpoint(self) -> None:
        now_s, every_s = self.clock.monotonic_s(), self.timing.checkpoint_s
        is_busy = self._checkpointing is not None and not self._checkpointing.done()
        if not every_s or not self.is_stateful or is_busy or now_s - self._checkpointed_s < every_s:
            return
        self._checkpointed_s = now_s
        self._checkpointing = self.checkpoint()

    def checkpoint(self) -> asyncio.Task[None]:
        """Take the state as of the last marker, which must be as it is now, and keep it while the
        task goes on."""
        return asyncio.ensure_future(self._keep(self.state.snapshot(), self._log_end))

    async def _keep(self, snapshot: bytes, marker: Lsn) -> None:
        """Append it, then set its places on the marker, then let later markers name that one."""
        lsns = [
            await self.log.append(
                (self.task.checkpoints_tag,), encode(Snapshot(snapshot[at : at + PART_BYTES]))
            )
            for at in range(0, len(snapshot), PART_BYTES)
        ]
        await self.log.set_aux(marker, _encode_aux(lsns))
        self._checkpoint = marker
