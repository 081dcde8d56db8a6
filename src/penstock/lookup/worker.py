"""An enrichment in a worker: record batches come in, and leave with the store's columns.

A worker keeps the look-up of an enrichment, its cache and its connections, from task to task; one
that was not used for a minute goes when another comes.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import BadCall
from penstock.lookup.ahead import AheadSource, ReadAhead
from penstock.lookup.columns import KeyedBatch, keyed, with_columns, without_null_keys
from penstock.lookup.counts import LookupCounts
from penstock.lookup.lookup import Asked, Failed, Lookup
from penstock.lookup.store import Key, Row, Store
from penstock.model.ddl import parse_ddl
from penstock.prefetch.value_cache import ValueCache

NULL, DROP, ERROR = "null", "drop", "error"
BEHAVIOURS = (NULL, DROP, ERROR)
BATCHES_ASKED_MAX = 2
"""Record batches of a task whose look-ups are under way at once."""
LOOKUP_IDLE_S = 60.0
NO_BATCH = -1


@dataclass(frozen=True)
class Enrichment:
    """One call of `penstock.enrich`, as it travels to the workers."""

    id: str
    """Of this call: workers keep one cache for each."""
    store: Store
    on: str
    time: str | None = None
    missing: str = NULL
    failure: str = ERROR
    cache: str = "timestamp"
    cache_bytes: int = 64 << 20
    ttl_s: float | None = None
    timeout_s: float = 1.0
    retries: int = 2
    in_flight: int = 4
    ahead: AheadSource | None = field(default=None, compare=False)


class TaskPlace(NamedTuple):
    """The query and the micro-batch of a task; None outside of streaming."""

    query: str | None = None
    batch: int | None = None


class WorkerLookup:
    """The look-up of one enrichment in this process, and its reader."""

    def __init__(self, spec: Enrichment, clock: Clock = SYSTEM_CLOCK) -> None:
        self.spec = spec
        self.columns = parse_ddl(spec.store.columns)
        self._clock = clock
        cache = ValueCache(spec.cache, spec.cache_bytes, spec.ttl_s)
        self.lookup = Lookup(
            spec.store,
            cache,
            timeout_s=spec.timeout_s,
            retries=spec.retries,
            in_flight=spec.in_flight,
            clock=clock,
        )
        self._reader = None if spec.ahead is None else ReadAhead(spec.ahead, self.lookup)
        self._batch: int | None = None
        self.used_s = clock.monotonic_s()

    def begin_task(self, place: TaskPlace) -> None:
        """Note a task; tasks of one micro-batch count as one batch for the cache's pins."""
        self.used_s = self._clock.monotonic_s()
        if place.batch is None or place.batch != self._batch:
            self.lookup.begin_batch()
        self._batch = place.batch
        if self._reader is not None:
            self._reader.note_task(place.query)

    def ask(self, batch: pa.RecordBatch, counts: LookupCounts) -> tuple[KeyedBatch, Asked]:
        """Send for the values of a batch's keys."""
        keys = keyed(batch, self.spec.on, self.spec.time, self._clock.wall_ms())
        counts.rows += batch.num_rows
        counts.null_keys += keys.places.null_count
        return keys, self.lookup.ask(keys.keys, keys.times_ms)

    def answer(
        self, batch: pa.RecordBatch, keys: KeyedBatch, asked: Asked
    ) -> tuple[pa.RecordBatch, int]:
        """The batch with its columns, and how many keys it had to wait for."""
        spec = self.spec
        values, failure, on_path = self.lookup.answer(asked)
        if failure is not None and spec.failure == ERROR:
            raise failure
        if spec.missing == ERROR:
            _refuse_missing(keys, values, spec)
        rows = [None if isinstance(value, Failed) else value for value in values]
        is_kept = [self._is_kept(value) for value in values]
        whole = with_columns(batch, keys, rows, is_kept, self.columns, repr(spec.store))
        if keys.places.null_count and spec.missing == DROP:
            whole = without_null_keys(whole, spec.on)
        return whole, on_path

    def _is_kept(self, value: Row | Failed | None) -> bool:
        if isinstance(value, Failed):
            return self.spec.failure != DROP
        return value is not None or self.spec.missing != DROP

    def take_counts(self) -> LookupCounts:
        counts = self.lookup.take_counts()
        counts.cache_bytes[f"{socket.gethostname()}:{os.getpid()}"] = self.lookup.cached_bytes
        if self._reader is not None:
            counts.ahead_error = self._reader.error
        return counts

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self.lookup.close()


_LOOKUPS: dict[str, WorkerLookup] = {}


def enrich_batches(
    spec: Enrichment,
    batches: Iterator[pa.RecordBatch],
    place: TaskPlace,
    tell: Callable[[LookupCounts], None],
) -> Iterator[pa.RecordBatch]:
    """The batches of one task, enriched, in order; `tell` is called once, at its end."""
    worker = _lookup_of(spec)
    worker.begin_task(place)
    counts = LookupCounts()
    on_path = 0
    under_way: deque[tuple[pa.RecordBatch, KeyedBatch, Asked]] = deque()
    try:
        for batch in batches:
            under_way.append((batch, *worker.ask(batch, counts)))
            if len(under_way) == BATCHES_ASKED_MAX:
                enriched, waited = worker.answer(*under_way.popleft())
                on_path += waited
                yield enriched
        while under_way:
            enriched, waited = worker.answer(*under_way.popleft())
            on_path += waited
            yield enriched
    finally:
        counts.on_path[NO_BATCH if place.batch is None else place.batch] = on_path
        tell(counts.add(worker.take_counts()))


def _lookup_of(spec: Enrichment) -> WorkerLookup:
    worker = _LOOKUPS.get(spec.id)
    if worker is None:
        now_s = SYSTEM_CLOCK.monotonic_s()
        for stale in [key for key, each in _LOOKUPS.items() if each.used_s < now_s - LOOKUP_IDLE_S]:
            _LOOKUPS.pop(stale).close()
        worker = _LOOKUPS[spec.id] = WorkerLookup(spec)
    return worker


def _refuse_missing(keys: KeyedBatch, values: Sequence[object], spec: Enrichment) -> None:
    absent: list[Key] = [key for key, value in zip(keys.keys, values, strict=True) if value is None]
    if absent:
        raise BadCall(
            f"{len(absent)} keys of {spec.on} are not in {spec.store!r}, the first is "
            f"{absent[0]!r}; put them there, or choose missing='null' or missing='drop'",
            code="missing_key",
        )
    if keys.places.null_count:
        raise BadCall(
            f"{keys.places.null_count} rows have null in {spec.on}, and no store has a value for "
            "that; filter them, or choose missing='null' or missing='drop'",
            code="missing_key",
        )
