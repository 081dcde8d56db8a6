"""A named consumer: rows of some streams, with its position in each kept in the log.

    for batch in client.consume("bids", group="mailer"):
        send(batch.rows)

Each batch is some whole commits of one stream. Its position is committed when the next batch is
asked for, so after `send` has returned: a consumer that stops in between gets the batch again, and
no row is left out (at least once). With `auto_commit=False` call `commit` when you have stored what
you made of the rows. Who must see each row once stores `position` together with that.

Until a consumer is forgotten (`penstock consumers forget`), or has stayed away for longer than the
server waits, the log keeps what it has not committed. Let one process at a time consume under a
name: a second one is told so at its next commit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from penstock.clock import Clock
from penstock.errors import BadCall

BATCH_BYTES = 8 << 20
WAIT_MS = 1_000
HEARD_S = 60.0
"""How often a consumer that has nothing to read says that it is still there."""


class Consumed(NamedTuple):
    """Rows of one stream in commit order, and the position that committing them moves to."""

    stream: str
    rows: pa.Table
    position: int


class Source(Protocol):
    """The calls of a client that a consumer makes."""

    def schema(self, stream: str) -> pa.Schema: ...

    def scan(
        self, stream: str, after: int | None = None, until: int | None = None
    ) -> Iterator[pa.RecordBatch]: ...

    def admit(
        self,
        stream: str,
        after: int,
        *,
        bytes_max: int | None = None,
        others: Mapping[str, int] | None = None,
        wait_ms: int = 0,
    ) -> tuple[int, int]: ...

    def register(self, group: str, stream: str, start: str | int) -> int: ...

    def move(
        self, group: str, moves: Mapping[str, tuple[int | None, int | None]]
    ) -> dict[str, int]: ...


class Consumer:
    """An iterator of batches, each `Consumed`. Ends when `stop` is set (seen within a second).

    Made by `Client.consume`. Not for several threads at once.
    """

    def __init__(
        self,
        source: Source,
        streams: Sequence[str],
        group: str,
        clock: Clock,
        *,
        start: str | int = "earliest",
        auto_commit: bool = True,
        stop: threading.Event | None = None,
    ) -> None:
        if not streams or len(set(streams)) != len(streams):
            raise BadCall("name the streams to consume, each once", code="bad_request")
        self.group = group
        self._source = source
        self._clock = clock
        self._auto_commit = auto_commit
        self._stop = stop
        self._turns = list(streams)
        self._committed = {name: source.register(group, name, start) for name in streams}
        self._read = dict(self._committed)
        self._heard_s = clock.monotonic_s()

    @property
    def positions(self) -> dict[str, int]:
        """The positions at which the consumer would go on after a restart, per stream."""
        return dict(self._committed)

    def __iter__(self) -> Consumer:
        return self

    def __next__(self) -> Consumed:
        """The next batch; waits for one. With `auto_commit` the one before it is committed first.

        Raises BadCall with code `trimmed` if rows it was to read are gone: never fewer rows.
        """
        if self._auto_commit:
            self.commit()
        while self._stop is None or not self._stop.is_set():
            for name in list(self._turns):
                batch = self._take(name)
                if batch is not None:
                    # The stream that was read goes last, so that a busy one starves no other.
                    self._turns.remove(name)
                    self._turns.append(name)
                    return batch
            self._wait()
        raise StopIteration

    def commit(self) -> None:
        """Keep in the log that everything given out so far is dealt with; durable on return."""
        moves = {
            name: (position, self._committed[name])
            for name, position in self._read.items()
            if position != self._committed[name]
        }
        if moves:
            self._committed.update(self._source.move(self.group, moves))
            self._heard_s = self._clock.monotonic_s()

    def _take(self, name: str) -> Consumed | None:
        """Whole commits of about a batch's size, at least one, or nothing."""
        after = self._read[name]
        end, _ = self._source.admit(name, after, bytes_max=BATCH_BYTES)
        if end == after:
            return None
        schema = self._source.schema(name)
        rows = pa.Table.from_batches(list(self._source.scan(name, after, end)), schema)
        self._read[name] = end
        return Consumed(name, rows, end)

    def _wait(self) -> None:
        first, *rest = self._turns
        others = {name: self._read[name] for name in rest}
        self._source.admit(first, self._read[first], others=others, wait_ms=WAIT_MS)
        if self._clock.monotonic_s() - self._heard_s > HEARD_S:
            self._source.move(self.group, dict.fromkeys(self._turns, (None, None)))
            self._heard_s = self._clock.monotonic_s()
