"""The checkpoint coordinator as a process: `python -m ….aligned.barriers JSON`.

Every interval, and never two at a time: a barrier into every source substream, one append; then
wait until every task has kept its state; then one append that says the checkpoint is complete. Both
ends of the graph's own stream are conditional, so that only the newest attempt completes anything.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import BadCall, Fenced
from penstock.model.ids import Instance, Lsn
from penstock_lab.baselines.task_graph.graph import Graph, checkpoints_tag
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import Barrier, Completed, Restored, decode, encode
from penstock_lab.baselines.task_graph.registry import graph_named
from penstock_lab.baselines.task_graph.socket_calls import Answering, answer_at
from penstock_lab.processes import READY, ended_with_parent, first_of


class BarriersJob(msgspec.Struct, frozen=True):
    """The graph to checkpoint, in which run, over which log, at which socket, how often."""

    graph: str
    run: str
    log: str
    socket: str
    interval_ms: float


class Barriers:
    """The coordinator of an attempt of a graph."""

    def __init__(self, graph: Graph, job: BarriersJob, log: LogClient, clock: Clock) -> None:
        self._tag = checkpoints_tag(job.run)
        self._sources = graph.tags(job.run, graph.source)
        self._tasks = {task.name for task in graph.tasks(job.run)}
        self._interval_s = job.interval_ms / 1000
        self._log = log
        self._clock = clock
        self._attempt, self._epoch = Instance(0), 0
        self._barrier = self._restored = self._end = Lsn(0)
        self._ready: set[str] = set()
        self._kept: set[str] = set()
        self._is_ready, self._is_kept = asyncio.Event(), asyncio.Event()

    async def restore(self) -> None:
        """Begin a new attempt at the last complete checkpoint."""
        tail, attempt = await self._log.tail(self._tag), Instance(1)
        if tail:
            entry = await self._log.entry(tail)
            last = decode(entry.payload)
            assert isinstance(last, Completed | Restored)  # nothing else is on this stream
            assert entry.head.instance is not None  # both are appended with their attempt
            attempt = Instance(entry.head.instance + 1)
            self._epoch, self._barrier = last.epoch, last.barrier
        self._attempt, self._end = attempt, tail
        await self._append(Restored(attempt, self._epoch, self._barrier))
        self._restored = self._end

    async def _append(self, payload: Completed | Restored) -> None:
        try:
            self._end = await self._log.append(
                (self._tag,),
                encode(payload),
                expect=(self._tag, self._end),
                producer=self._tag,
                instance=self._attempt,
            )
        except BadCall as error:
            if error.code != "conflict":
                raise
            raise Fenced(
                f"there is a newer attempt than {self._attempt}; this one ends", code="fenced"
            ) from error

    def handle(self, caller: Answering, number: int, name: str, arguments: list[Any]) -> None:
        match name, arguments:
            case "join", [_]:
                caller.answer(number, (self._attempt, self._epoch, self._barrier, self._restored))
            case "ready", [task]:
                self._ready.add(task)
                if self._ready == self._tasks:
                    self._is_ready.set()
                caller.answer(number, None)
            case "keep", [task, attempt, epoch]:
                if attempt == self._attempt and epoch == self._epoch + 1:
                    self._kept.add(task)
                    if self._kept == self._tasks:
                        self._is_kept.set()
                caller.answer(number, None)
            case _:
                raise BadCall(f"there is no call {name!r}", code="bad_request")

    async def run(self) -> None:
        """Checkpoint after checkpoint, from when every task is ready."""
        await self._is_ready.wait()
        while True:
            due_s = self._clock.monotonic_s() + self._interval_s
            await self._checkpoint()
            await asyncio.sleep(max(0.0, due_s - self._clock.monotonic_s()))

    async def _checkpoint(self) -> None:
        epoch = self._epoch + 1
        self._kept.clear()
        self._is_kept.clear()
        barrier = await self._log.append(
            self._sources, encode(Barrier(epoch)), producer=self._tag, instance=self._attempt
        )
        await self._is_kept.wait()
        await self._append(Completed(epoch, barrier))
        self._epoch, self._barrier = epoch, barrier


async def serve(job: BarriersJob) -> None:
    """Start barriers until SIGTERM, or the end of the log or of the process that began this."""
    log = await LogClient.open(Path(job.log))
    barriers = Barriers(graph_named(job.graph), job, log, SYSTEM_CLOCK)
    await barriers.restore()
    server = await answer_at(Path(job.socket), barriers.handle)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(READY, flush=True)
    running = asyncio.ensure_future(barriers.run())
    await first_of(stop.wait(), ended_with_parent(), log.lost, running)
    server.close()
    if running.done():
        running.result()


if __name__ == "__main__":
    asyncio.run(serve(msgspec.json.decode(sys.argv[1], type=BarriersJob)))
