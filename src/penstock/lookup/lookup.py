"""A look-up in a worker: the cache, what is in flight, retries, and what is made of a failure.

A key is fetched once at a time: rows that need a key in flight wait for that fetch. `ask` begins,
`answer` waits, so that the requests of several record batches overlap. No wait is longer than the
tries take: `1 + retries` times `timeout_s`, once more for a hint's request that fails, and the
pauses between them. A store that was given up is tried once, not `1 + retries` times, until it
answers.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Bug, PenstockError, TryAgain
from penstock.lookup.counts import LookupCounts
from penstock.lookup.lanes import Fetch, Lanes
from penstock.lookup.store import Key, Row, Store
from penstock.prefetch.value_cache import ValueCache

FETCH_KEYS_MIN = 256
"""Fewer keys are not divided among lanes: a request costs more than they do."""
FETCH_KEYS_MAX = 5_000
HINT_KEYS_MAX = 512
"""Keys of a hint's request: a row that needs a lane does not wait long behind it."""
PAUSE_FIRST_S = 0.05
PAUSE_MAX_S = 1.0
HINTS_WAITING_MAX = 16
"""Requests of hints in flight or queued; beyond that hints are not taken."""


class Failed:
    """The mark of a key that the store was asked for in vain."""


FAILED = Failed()


@dataclass
class Asked:
    """Keys of one record batch: the rows that were in the cache, and the fetches of the others."""

    keys: Sequence[Key]
    rows: dict[Key, Row | None] = field(default_factory=dict)
    times_ms: dict[Key, int] = field(default_factory=dict)
    fetches: dict[Key, Fetch] = field(default_factory=dict)
    misses: int = 0
    """Keys that the store was asked for because of these rows."""


class Lookup:
    """Look-ups of one enrichment in one worker; `ask` and `answer` are one task's, `hint` any's."""

    def __init__(
        self,
        store: Store,
        cache: ValueCache,
        *,
        timeout_s: float = 1.0,
        retries: int = 2,
        in_flight: int = 4,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._store = store
        self._cache = cache
        self._timeout_s = timeout_s
        self._retries = retries
        self._in_flight_max = in_flight
        self._clock = clock
        self._lanes = Lanes(store, timeout_s, in_flight, clock, self._on_done)
        self._lock = threading.Lock()
        self._in_flight: dict[Key, Fetch] = {}
        self._hint_fetches = 0
        self._hint_pieces = 0
        self._is_down = False
        self._counts = LookupCounts()

    def begin_batch(self) -> None:
        """Note that a task has begun: pins of the cache are counted in these."""
        with self._lock:
            self._cache.begin_batch()

    def ask(self, keys: Sequence[Key], times_ms: Sequence[int]) -> Asked:
        """Take from the cache what is there, and send for the rest; never blocks."""
        asked = Asked(keys)
        now_s = self._clock.monotonic_s()
        missing: list[Key] = []
        with self._lock:
            for key, at_ms in zip(keys, times_ms, strict=True):
                entry = self._cache.read(key, at_ms, now_s)
                if entry is not None:
                    asked.rows[key] = entry.row
                    continue
                asked.times_ms[key] = at_ms
                fetch = self._in_flight.get(key)
                if fetch is None:
                    missing.append(key)
                else:
                    fetch.joined.add(key)
                    asked.fetches[key] = fetch
            self._counts.hits += len(asked.rows)
            self._counts.waited += len(asked.fetches)
            self._counts.misses += len(missing)
            asked.misses = len(missing)
        self._send(asked, missing)
        return asked

    def answer(self, asked: Asked) -> tuple[list[Row | Failed | None], TryAgain | None, int]:
        """The rows in the order of the keys, why some are `FAILED`, and how many were on the path.

        On the path are keys that the store was asked for because of these rows, though the answer
        may have come while Spark sent more, and keys of hints that are still in flight.

        Raises what no further try can mend: a value of the wrong type, a refused password.
        """
        on_path = asked.misses + sum(
            fetch.is_hint and not fetch.done.is_set() for fetch in asked.fetches.values()
        )
        tries = 1 if self._is_down else 1 + self._retries
        pause_s = PAUSE_FIRST_S
        reason: Exception | None = None
        while asked.fetches:
            was_hint = all(fetch.is_hint for fetch in asked.fetches.values())
            reason, left = self._wait(asked)
            asked.fetches = {}
            if not left:
                self._is_down = False
                break
            # A hint's request that failed was no try of the row's own.
            tries -= not was_hint
            if tries <= 0:
                self._is_down = True
                break
            self._counts.retries += not was_hint
            if not was_hint:
                self._clock.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_MAX_S)
            self._send(asked, left)
        rows: list[Row | Failed | None] = [asked.rows.get(key, FAILED) for key in asked.keys]
        failed = sum(row is FAILED for row in rows)
        self._counts.failed += failed
        self._counts.absent += sum(row is None for row in rows)
        return rows, self._gave_up(failed, reason) if failed else None, on_path

    @property
    def has_room_for_hints(self) -> bool:
        with self._lock:
            return self._cache.has_room_for_hints and self._hint_fetches < HINTS_WAITING_MAX

    def hint(self, keys: Sequence[Key], times_ms: Sequence[int]) -> None:
        """Send for what is neither here nor in flight; never blocks, and drops what is too much.

        A call is for a piece of the stream, behind those of the calls before it.
        """
        now_s = self._clock.monotonic_s()
        wanted: list[tuple[Key, int]] = []
        with self._lock:
            self._counts.hints += len(keys)
            self._hint_pieces += 1
            piece = self._hint_pieces
            for key, at_ms in zip(keys, times_ms, strict=True):
                if not self._cache.expect(key, at_ms, now_s) and key not in self._in_flight:
                    wanted.append((key, at_ms))
            begun = []
            for start in range(0, len(wanted), HINT_KEYS_MAX):
                if self._hint_fetches >= HINTS_WAITING_MAX:
                    break
                part = wanted[start : start + HINT_KEYS_MAX]
                fetch = Fetch(
                    [key for key, _ in part], [at for _, at in part], is_hint=True, piece=piece
                )
                self._in_flight.update(dict.fromkeys(fetch.keys, fetch))
                self._hint_fetches += 1
                begun.append(fetch)
        for fetch in begun:
            self._submit(fetch)

    def take_counts(self) -> LookupCounts:
        """The counts since this was last called."""
        with self._lock:
            counts, self._counts = self._counts, LookupCounts()
            of_cache = self._cache.take_counts()
        counts.prefetched_used += of_cache.prefetched_used
        counts.prefetched_unused += of_cache.prefetched_unused
        counts.evictions += of_cache.evictions
        counts.expired += of_cache.expired
        return counts

    @property
    def cached_bytes(self) -> int:
        return self._cache.cached_bytes

    def close(self) -> None:
        self._lanes.close()

    def _send(self, asked: Asked, keys: Sequence[Key]) -> None:
        """Divide keys among the lanes: one round trip for all, as long as the lanes are free."""
        share = math.ceil(len(keys) / self._in_flight_max)
        size = min(max(share, FETCH_KEYS_MIN), FETCH_KEYS_MAX)
        for start in range(0, len(keys), size):
            part = keys[start : start + size]
            fetch = Fetch(part, [asked.times_ms[key] for key in part], is_hint=False)
            with self._lock:
                self._in_flight.update(dict.fromkeys(part, fetch))
            asked.fetches.update(dict.fromkeys(part, fetch))
            self._submit(fetch)

    def _submit(self, fetch: Fetch) -> None:
        self._lanes.submit(fetch)
        if fetch.done.is_set() and fetch.error is not None:
            self._forget(fetch)

    def _wait(self, asked: Asked) -> tuple[Exception | None, list[Key]]:
        """Wait for the fetches; the reason of the last failure, and the keys without an answer."""
        until_s = self._clock.monotonic_s() + self._timeout_s
        reason: Exception | None = None
        left: list[Key] = []
        answers: dict[int, dict[Key, Row | None]] = {}
        for key, fetch in asked.fetches.items():
            if not fetch.done.wait(max(0.0, until_s - self._clock.monotonic_s())):
                self._lanes.abandon(fetch)
                self._forget(fetch)
            if not fetch.done.is_set() or fetch.error is not None:
                reason = fetch.error or TimeoutError(f"no answer within {self._timeout_s:g} s")
                if not _may_pass(reason):
                    raise reason
                left.append(key)
                continue
            if id(fetch) not in answers:
                answers[id(fetch)] = dict(zip(fetch.keys, fetch.rows, strict=True))
            asked.rows[key] = answers[id(fetch)][key]
        return reason, left

    def _on_done(self, fetch: Fetch) -> None:
        """In a lane: keep what came, as far as the cache has room, and count the round trip."""
        with self._lock:
            self._end(fetch)
            if fetch.error is not None:
                return
            self._counts.note_round_trip(fetch.took_s)
            self._counts.prefetched += len(fetch.keys) if fetch.is_hint else 0
            for key, at_ms, row in zip(fetch.keys, fetch.times_ms, fetch.rows, strict=True):
                is_hint = fetch.is_hint and key not in fetch.joined
                is_kept = self._cache.put(
                    key, row, at_ms, fetch.begun_s, is_hint=is_hint, piece=fetch.piece
                )
                self._counts.prefetched_used += fetch.is_hint and not is_hint
                self._counts.prefetched_unused += is_hint and not is_kept

    def _forget(self, fetch: Fetch) -> None:
        with self._lock:
            self._end(fetch)

    def _end(self, fetch: Fetch) -> None:
        """Take a fetch off the books, under the lock: once, when it has ended or is given up."""
        known = [key for key in fetch.keys if self._in_flight.get(key) is fetch]
        for key in known:
            del self._in_flight[key]
        if known and fetch.is_hint:
            self._hint_fetches -= 1

    def _gave_up(self, failed: int, reason: Exception | None) -> TryAgain:
        words = reason.message if isinstance(reason, PenstockError) else str(reason)
        return TryAgain(
            f"{failed} keys could not be looked up in {self._store!r}, after {1 + self._retries} "
            f"tries of {self._timeout_s:g} s at most: {words}; see to the store, or choose "
            "failure='null' or failure='drop'",
            code="store_failed",
        )


def _may_pass(error: Exception) -> bool:
    return isinstance(error, (TryAgain, OSError, EOFError)) and not isinstance(error, Bug)
