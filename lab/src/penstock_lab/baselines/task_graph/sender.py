"""The open-loop sender of a task graph: `python -m …task_graph.sender JSON`.

Everything is made beforehand; `go` on its input starts the schedule. Rows carry the time they were
meant to be sent, a late send keeps it, and how late each was is reported. A send waits for no
answer of the one before.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import TryAgain
from penstock.model.ids import Lsn
from penstock_lab.baselines.task_graph.graph import Graph
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.registry import graph_named
from penstock_lab.baselines.task_graph.sources import load_of, stamped, ticks
from penstock_lab.percentiles import percentile
from penstock_lab.processes import READY, first_in_line

LEAD_S = 0.25
RETRY_S = 0.02
NEAR_S = 0.002


class SenderJob(msgspec.Struct, frozen=True):
    """The rows to send, where to, and how fast; with `is_paced` false as fast as it goes."""

    graph: str
    run: str
    log: str
    rate: int
    seconds: float
    seed: int
    tick_ms: int = 10
    is_paced: bool = True
    first: int = 0
    """Number of the first event: those before it were sent by another sender."""
    open_s: float = 0.0
    """How long auctions stay open, in seconds of event time; 0: as in the reference."""


class Sent(msgspec.Struct, frozen=True):
    """The report of a sender. Times in microseconds of the machine's monotonic clock."""

    started_us: int
    ended_us: int
    rows: int
    lag_ms: list[float]
    append_ms_p50: float
    append_ms_p99: float
    priority_raised: bool


class Lane:
    """Appends under way; an append that the log had no room for is sent again under its number."""

    def __init__(self, job: SenderJob, graph: Graph, log: LogClient, clock: Clock) -> None:
        self._tags = graph.tags(job.run, graph.source)
        # An append is known by its producer and number, and every sender counts from 0.
        self._producer = f"{job.run}.sender" + (f".{job.first}" if job.first else "")
        self._log = log
        self._clock = clock
        self.took_ms: list[float] = []

    def send(self, number: int, payload: bytes) -> asyncio.Future[None]:
        return asyncio.ensure_future(self._send(number, payload, self._append(number, payload)))

    def _append(self, number: int, payload: bytes) -> asyncio.Future[Lsn]:
        tag = self._tags[number % len(self._tags)]
        return self._log.append((tag,), payload, producer=self._producer, seq=number)

    async def _send(self, number: int, payload: bytes, answer: asyncio.Future[Lsn]) -> None:
        began_s = self._clock.monotonic_s()
        while True:
            try:
                await answer
                break
            except TryAgain as error:
                if error.code == "gone":
                    raise
                await asyncio.sleep(RETRY_S)
                answer = self._append(number, payload)
        self.took_ms.append((self._clock.monotonic_s() - began_s) * 1000)


async def send(job: SenderJob, clock: Clock = SYSTEM_CLOCK) -> Sent:
    graph = graph_named(job.graph)
    load = load_of(
        *(job.graph, job.rate, job.seconds, job.seed, job.tick_ms),
        first=job.first,
        open_s=job.open_s,
    )
    made = ticks(job.graph, load)
    lane = Lane(job, graph, await LogClient.open(Path(job.log)), clock)
    print(READY, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    lead_s = LEAD_S + len(made) * 1e-4 if job.is_paced else 0.0
    started_us = round((clock.monotonic_s() + lead_s) * 1e6)
    # Without a schedule all of it is due at once.
    payloads = [stamped(tick, started_us + tick.due_us * job.is_paced) for tick in made]
    gc.freeze()
    gc.disable()
    is_raised = first_in_line()
    lag_ms: list[float] = []
    under_way: list[asyncio.Future[None]] = []
    for number, (tick, payload) in enumerate(zip(made, payloads, strict=True)):
        if job.is_paced:
            due_s = (started_us + tick.due_us) / 1e6
            await asyncio.sleep(max(0.0, due_s - clock.monotonic_s() - NEAR_S))
            # A timer of the event loop is good to a millisecond; the rest is slept exactly.
            clock.sleep(max(0.0, due_s - clock.monotonic_s()))
            lag_ms.append((clock.monotonic_s() - due_s) * 1000)
        elif number % 64 == 0:
            await asyncio.gather(*under_way[-64:])
        under_way.append(lane.send(number, payload))
    await asyncio.gather(*under_way)
    return Sent(
        started_us,
        round(clock.monotonic_s() * 1e6),
        sum(len(tick.rows) for tick in made),
        [round(lag, 2) for lag in lag_ms],
        percentile(lane.took_ms, 50) or 0.0,
        percentile(lane.took_ms, 99) or 0.0,
        is_raised,
    )


if __name__ == "__main__":
    sent = asyncio.run(send(msgspec.json.decode(sys.argv[1], type=SenderJob)))
    print(msgspec.json.encode(sent).decode("ascii"), flush=True)
