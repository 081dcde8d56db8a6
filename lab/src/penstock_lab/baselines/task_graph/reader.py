"""The outside reader: `python -m …task_graph.reader JSON`.

Follows the answer of a graph and notes when each row becomes visible under the protocol's promise:
with a marker or a commit record, with the checkpoint that covers it, or, for `unsafe`, at once.
Every line on its input is answered with what has been seen; `keep PATH` writes all rows there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.log.contract import Entry
from penstock.log.raw.classify import Bounds, Classifier
from penstock_lab.baselines.task_graph.graph import checkpoints_tag
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import Completed, Restored, Rows, decode
from penstock_lab.baselines.task_graph.registry import Protocol as Name
from penstock_lab.baselines.task_graph.registry import graph_named
from penstock_lab.baselines.task_graph.replay import payloads, settled
from penstock_lab.processes import READY, first_in_line

EVERYTHING = Bounds(unknown_max=1 << 40, unknown_bytes_max=1 << 40)
"""Rows that wait are kept like those that were seen: this reader's memory is the bound of both."""


class ReaderJob(msgspec.Struct, frozen=True):
    """The answer to read: of which run, by which protocol, from which log."""

    graph: str
    run: str
    protocol: Name
    log: str


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """Rows that became visible at one moment, of the machine's monotonic clock."""

    at_us: int
    rows: list[Any]


class ReaderCount(msgspec.Struct, frozen=True):
    """The number of rows seen, and when the last of them was."""

    rows: int
    last_us: int


class Visible(Protocol):
    """A rule that says which rows are visible now that an entry is known."""

    def shown_by(self, entry: Entry) -> Sequence[bytes]: ...


class Committed:
    """Rows that a marker, or a commit record on their substream, covers."""

    def __init__(self) -> None:
        self._classifier = Classifier(EVERYTHING)

    def shown_by(self, entry: Entry) -> Sequence[bytes]:
        return payloads(settled(self._classifier, entry))


class AtOnce:
    """Every row."""

    def shown_by(self, entry: Entry) -> Sequence[bytes]:
        return [entry.payload]


class Checkpointed:
    """Rows of the current attempt whose checkpoint is complete."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[bytes]] = {}
        self._attempt = 0

    def shown_by(self, entry: Entry) -> Sequence[bytes]:
        message = decode(entry.payload)
        attempt = entry.head.instance or 0
        if isinstance(message, Restored):
            self._waiting, self._attempt = {}, attempt
        elif isinstance(message, Rows) and attempt == self._attempt:
            self._waiting.setdefault(message.epoch, []).append(entry.payload)
        elif isinstance(message, Completed):
            ready = sorted(epoch for epoch in self._waiting if epoch <= message.epoch)
            return [payload for epoch in ready for payload in self._waiting.pop(epoch)]
        return []


def visible_under(protocol: Name) -> Visible:
    match protocol:
        case "marker" | "transaction":
            return Committed()
        case "aligned":
            return Checkpointed()
        case "unsafe":
            return AtOnce()


class Reader:
    """The rows seen so far, in memory."""

    def __init__(self, protocol: Name, clock: Clock) -> None:
        self._visible = visible_under(protocol)
        self._clock = clock
        self.seen: list[Seen] = []
        self.rows = 0

    def receive(self, entries: list[Entry]) -> None:
        at_us = round(self._clock.monotonic_s() * 1e6)
        for entry in entries:
            for payload in self._visible.shown_by(entry):
                message = decode(payload)
                assert isinstance(message, Rows)  # nothing else is shown
                assert isinstance(message.rows, list)
                self.seen.append(Seen(at_us, message.rows))
                self.rows += len(message.rows)

    def looked(self) -> ReaderCount:
        return ReaderCount(self.rows, self.seen[-1].at_us if self.seen else 0)


async def read(job: ReaderJob, clock: Clock = SYSTEM_CLOCK) -> None:
    graph = graph_named(job.graph)
    reader = Reader(job.protocol, clock)
    log = await LogClient.open(Path(job.log))
    tags = graph.tags(job.run, graph.answer)
    if job.protocol == "aligned":
        tags = (*tags, checkpoints_tag(job.run))
    await log.subscribe(tags, 0, reader.receive)
    first_in_line()
    print(READY, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        log.check()
        word, _, path = line.strip().partition(" ")
        if word == "keep":
            Path(path).write_bytes(msgspec.msgpack.encode(reader.seen))
        print(msgspec.json.encode(reader.looked()).decode("ascii"), flush=True)


if __name__ == "__main__":
    asyncio.run(read(msgspec.json.decode(sys.argv[1], type=ReaderJob)))
