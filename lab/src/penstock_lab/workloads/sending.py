"""The open loop: pieces of rows, each sent when it is due and by whoever is free to send it.

The schedule is fixed before the first row is sent and never waits for an answer: a piece is due at
its tick, its rows carry that time as `sent_at`, and a late piece keeps it. So a stall of the
receiver shows as latency instead of as fewer rows. Pieces are dealt to several lanes, each a thread
with a connection and a producer id of its own, so that a slow answer delays no other piece until
every lane waits. An append is numbered by its tick: one sent twice is kept once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.client import Client
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import PenstockError
from penstock_lab.percentiles import percentile
from penstock_lab.workloads.traffic import stamped

LEAD_S = 0.1
LAG_MS_P99_MAX = 20.0
"""A sender that is later than this was not on schedule, and what was measured with it is void."""


@dataclass(frozen=True)
class Piece:
    """The rows of one tick for one stream, without their send time."""

    tick: int
    due_us: int
    """From the start of the run."""
    stream: str
    rows: pa.RecordBatch


class Target(Protocol):
    """A place rows go to."""

    def prepare(self, streams: Sequence[str]) -> None:
        """Do what the first send would else have to wait for."""
        ...

    def put(self, stream: str, rows: pa.RecordBatch, producer: str, sequence: int) -> bool:
        """Make the rows durable and visible; False if they had been sent before."""
        ...


class LogTarget:
    """Streams of the log, over a connection of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def prepare(self, streams: Sequence[str]) -> None:
        for stream in streams:
            self._client.describe(stream)

    def put(self, stream: str, rows: pa.RecordBatch, producer: str, sequence: int) -> bool:
        done = self._client.append(stream, rows, producer=producer, sequence=sequence)
        return not done.duplicate


class FolderTarget:
    """A folder per stream, a Parquet file per piece: what Spark's file source reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self, streams: Sequence[str]) -> None:
        for stream in streams:
            (self._folder / stream).mkdir(parents=True, exist_ok=True)

    def put(self, stream: str, rows: pa.RecordBatch, producer: str, sequence: int) -> bool:
        whole = self._folder / stream / f"{sequence:08d}.parquet"
        # Spark passes over names with a leading dot, and a rename shows all of a file or nothing.
        part = whole.with_name(f".{whole.name}")
        pq.write_table(pa.Table.from_batches([rows]), part)
        part.rename(whole)
        return True


class Sent(msgspec.Struct, frozen=True):
    """The sender's figures at its end. Lag: the start of a send after its due time."""

    rows: int
    ticks: int
    seconds: float
    duplicates: int
    lag_ms_p50: float
    lag_ms_p99: float
    lag_ms_max: float
    append_ms_p50: float
    append_ms_p99: float
    priority_raised: bool


@dataclass
class Lane:
    """The pieces `k` with `k % lanes == number`, sent one after the other."""

    number: int
    target: Target
    producer: str
    rows: int = 0
    duplicates: int = 0
    lag_ms: list[float] = field(default_factory=list)
    append_ms: list[float] = field(default_factory=list)
    error: PenstockError | None = None


@dataclass(frozen=True)
class Sending:
    """One run of the sender: what to send, and the start every lane counts from."""

    pieces: Sequence[Piece]
    started_s: float
    started_ms: int
    stop: threading.Event
    clock: Clock

    def run(self, lane: Lane, lanes: int) -> None:
        """Send the lane's pieces until the end, `stop`, or the first error, which stops all."""
        try:
            for piece in self.pieces[lane.number :: lanes]:
                due_s = self.started_s + piece.due_us / 1e6
                if self.stop.wait(max(0.0, due_s - self.clock.monotonic_s())):
                    return
                self._send(lane, piece, due_s)
        except PenstockError as error:
            lane.error = error
            self.stop.set()

    def _send(self, lane: Lane, piece: Piece, due_s: float) -> None:
        rows = stamped(piece.rows, self.started_ms * 1000 + piece.due_us)
        began = self.clock.monotonic_s()
        lane.lag_ms.append((began - due_s) * 1000)
        is_new = lane.target.put(piece.stream, rows, lane.producer, piece.tick + 1)
        lane.append_ms.append((self.clock.monotonic_s() - began) * 1000)
        lane.rows += rows.num_rows
        lane.duplicates += not is_new


@dataclass(frozen=True)
class Done:
    """The moment a run of the sender began by the wall clock, and how long it took."""

    started_ms: int
    seconds: float


def send(
    lanes: Sequence[Lane],
    pieces: Sequence[Piece],
    stop: threading.Event,
    clock: Clock = SYSTEM_CLOCK,
) -> Done:
    """Run every lane to its end. Pieces are in the order they are due."""
    streams = sorted({piece.stream for piece in pieces})
    for lane in lanes:
        # Connections and schemas are fetched now, not in the first tick.
        lane.target.prepare(streams)
    sending = Sending(
        pieces,
        clock.monotonic_s() + LEAD_S,
        clock.wall_ms() + int(LEAD_S * 1000),
        stop,
        clock,
    )
    threads = [threading.Thread(target=sending.run, args=(lane, len(lanes))) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Done(sending.started_ms, clock.monotonic_s() - sending.started_s)


def report(lanes: Sequence[Lane], seconds: float, priority_raised: bool) -> Sent:
    lag_ms = [value for lane in lanes for value in lane.lag_ms]
    append_ms = [value for lane in lanes for value in lane.append_ms]
    return Sent(
        rows=sum(lane.rows for lane in lanes),
        ticks=len(append_ms),
        seconds=round(seconds, 3),
        duplicates=sum(lane.duplicates for lane in lanes),
        lag_ms_p50=_ms(lag_ms, 50),
        lag_ms_p99=_ms(lag_ms, 99),
        lag_ms_max=_ms(lag_ms, 100),
        append_ms_p50=_ms(append_ms, 50),
        append_ms_p99=_ms(append_ms, 99),
        priority_raised=priority_raised,
    )


def _ms(values: list[float], share: float) -> float:
    return round(percentile(values, share) or 0.0, 2)
