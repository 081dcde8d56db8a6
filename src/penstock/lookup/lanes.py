"""Threads that ask a store, each over a connection of its own.

A request is a `Fetch`. What rows wait for goes before what hints ask for, and hints never hold the
last lane. A request that is given up leaves its lane behind, if the store will not let it go: the
lane ends when it comes back, and another takes its place at once.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence

from penstock.clock import Clock
from penstock.errors import Bug, PenstockError, TryAgain
from penstock.lookup.store import Key, Row, Store, StoreConnection

LOST_LANES_MAX = 32
"""Lanes left behind at once; then requests fail without being made."""


class Fetch:
    """A request for some keys, and its end: rows, or an error."""

    def __init__(
        self, keys: Sequence[Key], times_ms: Sequence[int], *, is_hint: bool, piece: int = 0
    ) -> None:
        self.keys = keys
        self.times_ms = times_ms
        self.is_hint = is_hint
        self.piece = piece
        """Of a hint: the number of the piece of the stream that it is of."""
        self.is_abandoned = False
        self.joined: set[Key] = set()
        """Keys that a row came to wait for while a hint's request was under way."""
        self.begun_s = 0.0
        self.took_s = 0.0
        self.rows: Sequence[Row | None] = ()
        self.error: Exception | None = None
        self.done = threading.Event()


class Lanes:
    """A bounded number of threads, started when they are needed; safe to share.

    `on_done` is called in a lane, before `done` is set, for every fetch that was not abandoned.
    """

    def __init__(
        self,
        store: Store,
        timeout_s: float,
        lanes_max: int,
        clock: Clock,
        on_done: Callable[[Fetch], None],
    ) -> None:
        self._store = store
        self._timeout_s = timeout_s
        self._lanes_max = lanes_max
        self._hints_max = max(1, lanes_max - 1)
        self._clock = clock
        self._on_done = on_done
        self._changed = threading.Condition()
        self._needed: deque[Fetch] = deque()
        self._hinted: deque[Fetch] = deque()
        self._running: set[Fetch] = set()
        self._lanes = 0
        self._idle = 0
        self._lost = 0
        self._is_closed = False

    def submit(self, fetch: Fetch) -> None:
        """Ask as soon as a lane is free; never blocks."""
        with self._changed:
            if self._lost >= LOST_LANES_MAX or self._is_closed:
                fetch.error = TryAgain(
                    f"{self._lost} requests to {self._store!r} have never come back; nothing more "
                    "is asked until some do",
                    code="store_failed",
                )
                fetch.done.set()
                return
            (self._hinted if fetch.is_hint else self._needed).append(fetch)
            if self._idle < len(self._needed) + len(self._hinted) and self._lanes < self._lanes_max:
                self._lanes += 1
                threading.Thread(target=self._run, name="penstock-lookup", daemon=True).start()
            self._changed.notify_all()

    def abandon(self, fetch: Fetch) -> None:
        """Give a fetch up; what it may still bring is dropped."""
        with self._changed:
            if fetch.done.is_set() or fetch.is_abandoned:
                return
            fetch.is_abandoned = True
            for waiting in (self._needed, self._hinted):
                with contextlib.suppress(ValueError):
                    waiting.remove(fetch)
            if fetch in self._running:
                self._running.remove(fetch)
                self._lanes -= 1
                self._lost += 1

    def close(self) -> None:
        """End every lane once it has come back."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        connection: StoreConnection | None = None
        while (fetch := self._next()) is not None:
            connection = self._ask(fetch, connection)
            with self._changed:
                if fetch not in self._running:
                    self._lost -= 1
                    break
                self._running.remove(fetch)
                self._changed.notify_all()
            try:
                self._on_done(fetch)
            finally:
                fetch.done.set()
        _close(connection)

    def _next(self) -> Fetch | None:
        with self._changed:
            self._idle += 1
            try:
                while not self._is_closed:
                    if self._needed:
                        return self._started(self._needed.popleft())
                    hints_running = sum(fetch.is_hint for fetch in self._running)
                    if self._hinted and hints_running < self._hints_max:
                        return self._started(self._hinted.popleft())
                    self._changed.wait()
                self._lanes -= 1
                return None
            finally:
                self._idle -= 1

    def _started(self, fetch: Fetch) -> Fetch:
        self._running.add(fetch)
        fetch.begun_s = self._clock.monotonic_s()
        return fetch

    def _ask(self, fetch: Fetch, connection: StoreConnection | None) -> StoreConnection | None:
        """The connection for the next request: none after an error."""
        try:
            if connection is None:
                connection = self._store.connect(self._timeout_s)
            fetch.rows = connection.get_many(fetch.keys)
            fetch.took_s = self._clock.monotonic_s() - fetch.begun_s
            if len(fetch.rows) != len(fetch.keys):
                raise Bug(
                    f"{self._store!r} was asked for {len(fetch.keys)} keys and gave "
                    f"{len(fetch.rows)} rows; whoever wrote its get_many must give a row or None "
                    "for each",
                    code="bug",
                )
        except (OSError, EOFError, PenstockError) as error:
            fetch.error = error
        except Exception as error:
            # A store is foreign code; its faults end the query that asked, not this thread.
            fetch.error = Bug(
                f"{self._store!r} failed with {type(error).__name__}: {error}", code="store_bug"
            )
            fetch.error.__cause__ = error
        if fetch.error is not None:
            _close(connection)
            return None
        return connection


def _close(connection: StoreConnection | None) -> None:
    if connection is not None:
        # The connection may be broken, and nobody is left to be told.
        with contextlib.suppress(Exception):
            connection.close()
