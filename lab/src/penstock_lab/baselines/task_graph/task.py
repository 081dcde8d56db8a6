"""A task of a graph: takes entries in, processes them, and sends on what comes of it.

What differs between protocols is when an input counts, how a batch is committed, and how a task
comes back; each is a class of its own below this one. Single-threaded: everything happens on the
event loop of the worker, and nothing is processed while a batch is being committed.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.clock import Clock
from penstock.errors import TryAgain
from penstock.log.contract import Entry
from penstock.log.raw.classify import Bounds, Classifier, Committed, Recall
from penstock.model.ids import Instance, Lsn
from penstock_lab.baselines.task_graph.graph import Graph, Task, stream_tag
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import Changes, Row, Rows, decode, encode
from penstock_lab.baselines.task_graph.output_buffer import OutputBuffer
from penstock_lab.baselines.task_graph.replay import is_whole, payloads, read_again, settled
from penstock_lab.baselines.task_graph.state import State

DELAY_US = 4_000_000
"""How late an event may be before what it could change is dropped."""
SWEEP_US = 1_000_000
RETRY_S = 0.02
WAITING_BYTES_MAX = 64 << 20
"""Of input that came while a task was paused: at that much the log's process is asked to hold."""
WAITING_BYTES = 256
"""What an entry takes besides its payload, about."""
CLOCKS = "clock"


@dataclass(frozen=True)
class Timing:
    """The times at which a task commits: every `interval_s`, the first after `phase` of it."""

    interval_s: float
    phase: float = 0.0
    checkpoint_s: float = 0.0
    """How often the state is kept as a whole; 0 for never."""


@dataclass(frozen=True)
class _Sent:
    tags: tuple[str, ...]
    payload: bytes
    seq: int
    answer: asyncio.Future[Lsn]


class TaskRun(ABC):
    """One instance of a task. `recover`, then `start`; after that `commit` again and again."""

    bounds = Bounds()
    """How much of its input a task remembers that no marker has settled; the rest is read again."""

    def __init__(
        self, graph: Graph, task: Task, log: LogClient, timing: Timing, clock: Clock
    ) -> None:
        stage = graph.stage(task.stage)
        self.graph, self.task, self.log, self.timing, self.clock = graph, task, log, timing, clock
        self.operator = stage.make()
        self.is_stateful = stage.is_stateful
        self.state = State()
        self.in_tag = stream_tag(task.run, stage.reads, task.number)
        self.out_tags = graph.tags(task.run, stage.writes)
        self.producers = {
            name: number for number, name in enumerate(graph.producers(task.run, stage.reads))
        }
        self.output = OutputBuffer(len(self.out_tags))
        self.instance = Instance(0)
        self.seq = 0
        self.is_dirty = False
        """Whether something was consumed since the last commit."""
        self.commits = 0
        self.changes_replayed = 0
        self._sent: list[_Sent] = []
        self._reading: asyncio.Task[None] | None = None
        self._is_paused = False
        self._waiting: list[Entry] = []
        self._waiting_bytes = 0
        self._is_holding = False
        self._clocks: dict[int, int] = {}
        self._swept_us = 0

    @abstractmethod
    async def recover(self) -> None:
        """Become the current instance, with the state of the last commit, and be subscribed."""

    @abstractmethod
    def take(self, entries: Sequence[Entry]) -> None:
        """Process what counts of the entries of the input, in order."""

    @abstractmethod
    async def commit(self) -> None:
        """Send what is buffered, and say what the protocol says about it."""

    async def run(self) -> None:
        """Commit until cancelled, or until a newer instance has taken over, which raises."""
        due_s = self.clock.monotonic_s() + self.timing.interval_s * (1 + self.timing.phase)
        while True:
            await asyncio.sleep(max(0.0, due_s - self.clock.monotonic_s()))
            await self.commit()
            # A commit that took longer than the interval is followed by the next at once.
            due_s = max(due_s + self.timing.interval_s, self.clock.monotonic_s())

    def receive(self, entries: list[Entry]) -> None:
        if self._is_paused:
            self._waiting.extend(entries)
            self._count(entries)
        else:
            self.take(entries)

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        """Process what came in the meantime; a task may pause again in the middle of it."""
        self._is_paused = False
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting:
            self.take(waiting)
        self._count(())

    def put_back(self, entries: Sequence[Entry]) -> None:
        """Have these first when the task goes on."""
        self._waiting = [*entries, *self._waiting]
        self._count(entries)

    def _count(self, waiting: Sequence[Entry]) -> None:
        """Count what waits, and have the log's process hold while it is too much."""
        self._waiting_bytes += sum(WAITING_BYTES + len(entry.payload) for entry in waiting)
        is_full = self._waiting_bytes >= WAITING_BYTES_MAX
        if is_full != self._is_holding:
            self._is_holding = is_full
            self.log.hold(self.receive, is_full)

    def take_settled(self, inputs: Classifier, entries: Sequence[Entry]) -> None:
        """Process what a marker or commit record makes count. Where the classifier had no room for
        it, it is read again, and what comes later waits for that; `caught_up` waits for it too."""
        for place, entry in enumerate(entries):
            kept = settled(inputs, entry)
            if not is_whole(kept):
                self.pause()
                self.put_back(entries[place + 1 :])
                self._reading = asyncio.ensure_future(self._read_again(inputs, entry, kept))
                return
            for payload in payloads(kept):
                self.process(payload, entry.head.producer)

    async def _read_again(
        self, inputs: Classifier, entry: Entry, kept: Sequence[Committed | Recall]
    ) -> None:
        for payload in await read_again(self.log, self.in_tag, inputs, kept):
            self.process(payload, entry.head.producer)
        self._reading = None
        self.resume()

    async def caught_up(self) -> None:
        """Nothing is being read again, so that a commit has all of a marker or nothing of it."""
        while self._reading is not None:
            await self._reading

    def process(self, payload: bytes, producer: str | None) -> None:
        """Process the payload of rows that count."""
        rows = decode(payload)
        assert isinstance(rows, Rows)  # nothing else is on a substream and counts
        self.process_rows(rows, producer)

    def process_rows(self, batch: Rows, producer: str | None) -> None:
        assert isinstance(batch.rows, list)  # bytes as they are only on the way out
        self.is_dirty = True
        self.operator.process(batch.rows, self.state, self.emit)
        self._pass_time(self.producers.get(producer or "", 0), batch.clock_us)

    def emit(self, key: int, row: Row) -> None:
        substream = key % len(self.out_tags)
        if self.output.put(substream, row) and self.may_send(substream):
            self._send_rows(substream)

    def may_send(self, substream: int) -> bool:
        """Whether a full buffer may go out before the commit."""
        return True

    @property
    def epoch(self) -> int:
        """The checkpoint that rows sent now belong to, where there are such."""
        return 0

    @property
    def clock_us(self) -> int:
        """Event time that every input has come to; 0 until all of them have been heard."""
        if len(self._clocks) < max(1, len(self.producers)):
            return 0
        return min(self._clocks.values())

    def _pass_time(self, producer: int, clock_us: int) -> None:
        if clock_us <= self._clocks.get(producer, 0):
            return
        self._clocks[producer] = clock_us
        if self.is_stateful:
            self.state.put(CLOCKS, producer, clock_us)
        passed_us = self.clock_us - DELAY_US
        if passed_us >= self._swept_us + SWEEP_US:
            self._swept_us = passed_us
            self.operator.sweep(passed_us, self.state)

    def restored(self) -> None:
        """The state is what it was: take from it what is kept beside it."""
        self._clocks = dict(self.state.table(CLOCKS))

    def send(self, tags: Sequence[str], payload: bytes) -> None:
        """Append an entry that waits for its commit; `sent` waits until it is durable."""
        self.seq += 1
        self._sent.append(
            _Sent(tuple(tags), payload, self.seq, self._append(tags, payload, self.seq))
        )

    def _append(self, tags: Sequence[str], payload: bytes, seq: int) -> asyncio.Future[Lsn]:
        return self.log.append(
            tags, payload, producer=self.task.name, instance=self.instance, seq=seq
        )

    def _send_rows(self, substream: int) -> None:
        payload = self.output.take(substream, self.clock_us, self.epoch)
        self.send((self.out_tags[substream],), payload)

    def send_outputs(self) -> None:
        """Every row that is buffered."""
        for substream in self.output.filled:
            self._send_rows(substream)

    def send_all(self) -> None:
        """Send all that is buffered, the changes of state too."""
        self.send_outputs()
        changes = self.state.take_changes()
        if changes:
            self.send((self.task.changes_tag,), encode(Changes(changes)))

    async def sent(self) -> Lsn:
        """Wait until all that was sent is durable; where the last of it is. An entry that the
        log had no room for is sent again under its number, so that it cannot be there twice."""
        last = Lsn(0)
        sent, self._sent = self._sent, []
        for entry in sent:
            answer = entry.answer
            while True:
                try:
                    last = Lsn(await answer)
                    break
                except TryAgain as error:
                    if error.code == "gone":
                        raise
                    await asyncio.sleep(RETRY_S)
                    answer = self._append(entry.tags, entry.payload, entry.seq)
        return last
