"""Reading ahead: rows that still wait in the log tell a worker which values it will need.

A thread in the worker follows the stream that the query reads, from where the query is. It takes
the keys of rows as they are committed and has their values fetched, while the batch before is still
computed. Hints may be late or lost, which costs a read and no answer.

Every worker reads ahead for itself, because which of them will have a row is not known before its
task starts: of what two workers fetch, each uses its part. So the share that goes unused tells how
many workers there are, and not what reading ahead saves: no controller turns it off by that share.
A sketch of hot keys would save nothing here: the reader looks into the worker's own cache, which is
cheaper than a sketch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from penstock.client.address import Address
from penstock.client.client import Client
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import BadCall, PenstockError
from penstock.lookup.columns import keyed
from penstock.lookup.lookup import Lookup

IDLE_S = 30.0
"""Without a task for so long a worker stops reading ahead, until the next one."""
ROOM_PAUSE_S = 0.01
OVERTAKEN_AFTER_S = 0.5
"""After a longer wait for room the query may have read what the reader still holds."""
ERROR_PAUSE_S = 1.0
HINT_ROWS_MAX = 2_000
CLIENT_DEADLINE_S = 5.0

Rows: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class Ahead:
    """The stream to read ahead, and how its rows become those that are enriched.

    `rows` is a function from a record batch of the stream to one with the columns that the key and
    the time are taken from: the filters and expressions between the stream and `enrich`, in Arrow's
    words. What it lets through and the query does not is fetched in vain; what it drops costs a
    read. Without it, rows are taken as they are in the stream. Without `stream` it is the one
    stream of the log that the frame reads.
    """

    rows: Rows | None = None
    stream: str | None = None


@dataclass(frozen=True)
class AheadSource:
    """The same, for a worker: the stream's name and where its server is."""

    stream: str
    address: Address
    rows: Rows | None
    on: str
    time: str | None


class ReadAhead:
    """The reader of one enrichment in one worker: a thread while there are tasks."""

    def __init__(
        self,
        source: AheadSource,
        lookup: Lookup,
        *,
        clock: Clock = SYSTEM_CLOCK,
        idle_s: float = IDLE_S,
    ) -> None:
        self._source = source
        self._lookup = lookup
        self._clock = clock
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._query: str | None = None
        self._used_s = 0.0
        self._stop = _WhenIdle(self._is_idle)
        self.error = ""
        """Why it has stopped for good: the function `rows` failed."""

    def note_task(self, query: str | None) -> None:
        """Go on for a while; called by every task, with the id of its query if it has one."""
        with self._lock:
            self._query = query
            self._used_s = self._clock.monotonic_s()
            if self._thread is None and not self.error:
                self._thread = threading.Thread(
                    target=self._run, name="penstock-ahead", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        self._stop.set()

    def _is_idle(self) -> bool:
        return self._clock.monotonic_s() - self._used_s > self._idle_s

    def _run(self) -> None:
        at = self._source.address
        with Client(at.url, at.token, at.ca, deadline_s=CLIENT_DEADLINE_S) as client:
            while not self._stop.is_set():
                try:
                    self._follow(client)
                except PenstockError:
                    # The server is away, or rows were trimmed: the query finds that out itself.
                    self._stop.wait(ERROR_PAUSE_S)
                except Exception as error:
                    self.error = f"{type(error).__name__}: {error}"
                    return
        with self._lock:
            self._thread = None

    def _follow(self, client: Client) -> None:
        """Hint at rows as they come, until the reader finds that the query has overtaken it."""
        after = self._start(client)
        for followed in client.follow(self._source.stream, after, stop=self._stop):
            for batch in _pieces(followed.rows):
                waited_s = self._wait_room()
                if self._stop.is_set():
                    return
                if waited_s > OVERTAKEN_AFTER_S and (self._start(client) or 0) > followed.position:
                    return
                self._hint(batch)

    def _start(self, client: Client) -> int | None:
        """The position that the query has read up to; None, the latest, if it is not known."""
        stream, query = self._source.stream, self._query
        try:
            consumers = client.consumers()
        except BadCall:
            # The token may read rows and not see who else does.
            return None
        return max(
            (
                consumer.position
                for consumer in consumers
                if consumer.name == query and consumer.stream == stream
            ),
            default=None,
        )

    def _wait_room(self) -> float:
        """Wait until hints are taken; the seconds that it took."""
        began_s = self._clock.monotonic_s()
        while not self._lookup.has_room_for_hints and not self._stop.is_set():
            self._stop.wait(ROOM_PAUSE_S)
        return self._clock.monotonic_s() - began_s

    def _hint(self, batch: pa.RecordBatch) -> None:
        source = self._source
        rows = batch if source.rows is None else source.rows(batch)
        batch_keys = keyed(rows, source.on, source.time, self._clock.wall_ms())
        if batch_keys.keys:
            self._lookup.hint(batch_keys.keys, batch_keys.times_ms)


class _WhenIdle(threading.Event):
    """Set by hand, or while nobody has used the reader for long."""

    def __init__(self, is_idle: Callable[[], bool]) -> None:
        super().__init__()
        self._is_idle = is_idle

    def is_set(self) -> bool:
        return super().is_set() or self._is_idle()


def _pieces(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches(max_chunksize=HINT_ROWS_MAX)
