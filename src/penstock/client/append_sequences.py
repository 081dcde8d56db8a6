"""Numbers the appends of one producer, stream by stream.

The server drops a sequence that is not above the last one it saw, so two appends to one stream
must never be under way at once under one producer: the later one could arrive first, and the
earlier one would be lost. A claim therefore holds its stream until it is given back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Claim(NamedTuple):
    producer: str
    sequence: int


class Sequences:
    """The sequences of one random producer id, each stream from 1."""

    def __init__(self, producer: str) -> None:
        self.producer = producer
        self._lock = threading.Lock()
        self._last: dict[str, int] = {}
        self._busy: dict[str, threading.Lock] = {}

    @contextmanager
    def claim(
        self, stream: str, producer: str | None = None, sequence: int | None = None
    ) -> Iterator[Claim]:
        """The next sequence of the stream; a failed append uses one up, which does no harm.

        With a producer and sequence of the caller's own nothing is counted or held: their order
        is the caller's promise.
        """
        if producer is not None and sequence is not None:
            # Sending an append of ours again must not overtake one under way.
            if producer != self.producer:
                yield Claim(producer, sequence)
                return
            with self._held(stream):
                self._last[stream] = max(self._last.get(stream, 0), sequence)
                yield Claim(producer, sequence)
            return
        with self._held(stream):
            self._last[stream] = self._last.get(stream, 0) + 1
            yield Claim(self.producer, self._last[stream])

    def _held(self, stream: str) -> threading.Lock:
        with self._lock:
            return self._busy.setdefault(stream, threading.Lock())
