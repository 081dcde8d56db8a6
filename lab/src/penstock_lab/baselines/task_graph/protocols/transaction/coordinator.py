"""The transaction coordinator as a process: `python -m ….transaction.coordinator JSON`.

Every step is a durable append to its own stream before it is answered. Killed and started again, it
reads that stream and finishes what was prepared; what no recovery needs is trimmed.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import BadCall
from penstock.model.ids import Instance, Lsn
from penstock.model.task_records import Progress, encode_control
from penstock_lab.baselines.task_graph.graph import transactions_tag
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import Step, decode, encode
from penstock_lab.baselines.task_graph.protocols.transaction.book import Book, Line
from penstock_lab.baselines.task_graph.protocols.transaction.own_stream import TRIM_EVERY, OwnStream
from penstock_lab.baselines.task_graph.socket_calls import Answering, answer_at
from penstock_lab.processes import READY, ended_with_parent, first_of


class CoordinatorJob(msgspec.Struct, frozen=True):
    """The run to coordinate, over which log, at which socket."""

    run: str
    log: str
    socket: str


class Coordinator:
    """Carries out what the book decides, of each task one call after the other: between a decision
    and the moment it is durable and noted, another instance must not decide by what was before."""

    def __init__(self, run: str, log: LogClient, trim_every: int = TRIM_EVERY) -> None:
        self._tag = transactions_tag(run)
        self._log = log
        self._book = Book()
        self._stream = OwnStream(trim_every)
        self._trimming: asyncio.Task[None] | None = None
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._phase_two: dict[str, asyncio.Task[None]] = {}
        self._calls: set[asyncio.Task[None]] = set()

    async def recover(self) -> None:
        start, tail = await self._log.trim(self._tag, 0) + 1, await self._log.tail(self._tag)
        while start <= tail:
            for entry in await self._log.page(self._tag, start, tail):
                step = decode(entry.payload)
                assert isinstance(step, Step)  # nobody else writes here
                self._book.note(step, entry.head.lsn)
                self._stream.read(entry.head.lsn)
                start = entry.head.lsn + 1
        for task in self._book.unfinished():
            self._finish(task)

    def handle(self, caller: Answering, number: int, name: str, arguments: list[Any]) -> None:
        calls: dict[str, Callable[..., Awaitable[Any]]] = {
            "begin": self.begin,
            "register": self.register,
            "commit": self.commit,
        }
        if name not in calls:
            raise BadCall(f"there is no call {name!r}", code="bad_request")

        async def answer() -> None:
            try:
                caller.answer(number, await calls[name](*arguments))
            except Exception as error:
                caller.refuse(number, error)

        call = asyncio.ensure_future(answer())
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def begin(self, task: str) -> tuple[Instance, Lsn, int]:
        """A new instance: the old one is refused from here on, then its transaction is ended."""
        async with self._turns[task]:
            await self._finished(task)
            line = self._book.line(task)
            left = (line.instance, set(line.tags)) if line.state == "open" else None
            step = self._book.begin(task)
            await self._note(step)
            if left is not None:
                await self._say(left[1], Progress(task, left[0], 1, 0))
            return step.instance, line.offsets, line.number

    async def register(self, task: str, instance: int, number: int, tags: list[str]) -> None:
        async with self._turns[task]:
            if number > self._book.line(task).number:
                await self._finished(task)
            step = self._book.register(task, Instance(instance), number, tags)
            if step is not None:
                await self._note(step)

    async def commit(
        self, task: str, instance: int, number: int, first: int, last: int, offsets: int
    ) -> None:
        async with self._turns[task]:
            step = self._book.prepare(task, Instance(instance), number, first, last, Lsn(offsets))
            if step is not None:
                await self._note(step)
                self._finish(task)

    def _finish(self, task: str) -> None:
        self._phase_two[task] = asyncio.ensure_future(self._commit_all(task, self._book.line(task)))

    async def _commit_all(self, task: str, line: Line) -> None:
        said = Progress(task, line.instance, line.first, line.last)
        await self._say(line.tags, said)
        await self._note(self._book.done(task))

    async def _say(self, tags: set[str], progress: Progress) -> None:
        """The same record on every substream, each an append of its own, all under way at once."""
        record = encode_control(progress)
        await asyncio.gather(
            *(
                self._log.append(
                    (tag,), record, producer=progress.producer, instance=progress.instance
                )
                for tag in sorted(tags)
            )
        )

    async def _finished(self, task: str) -> None:
        under_way = self._phase_two.get(task)
        if under_way is not None:
            await under_way

    async def _note(self, step: Step) -> None:
        begun, lsn = self._stream.begin(), None
        try:
            lsn = await self._log.append((self._tag,), encode(step))
            self._book.note(step, lsn)
        finally:
            self._stream.end(begun, lsn)
        if self._stream.is_due and (self._trimming is None or self._trimming.done()):
            self._trimming = asyncio.ensure_future(self._trim())

    async def _trim(self) -> None:
        """In the way of no call but those of tasks that stand still."""
        old = self._stream.start_trim()
        for task in self._book.said_before(old):
            async with self._turns[task]:
                await self._finished(task)
                if self._book.line(task).since < old:
                    await self._note(self._book.anew(task))
        await self._log.trim(self._tag, self._stream.until(self._book.needed()))


async def serve(job: CoordinatorJob) -> None:
    """Coordinate until SIGTERM, or until the log or the process that started this one is gone."""
    log = await LogClient.open(Path(job.log))
    coordinator = Coordinator(job.run, log)
    await coordinator.recover()
    server = await answer_at(Path(job.socket), coordinator.handle)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(READY, flush=True)
    await first_of(stop.wait(), ended_with_parent(), log.lost)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(msgspec.json.decode(sys.argv[1], type=CoordinatorJob)))
