"""The state of a log written down by hand, for tests of decisions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from penstock.errors import PenstockError
from penstock.log.contract import Entry, Head
from penstock.log.decide import decide
from penstock.log.operations import Operation
from penstock.log.plan import Plan, ProducerRecord, SilentProducer
from penstock.log.rules import Rules
from penstock.log.state import (
    Commit,
    ConsumerRecord,
    Covered,
    DeletedStream,
    QueryRecord,
    Reader,
    Run,
    StoreRecord,
    StreamRecord,
)
from penstock.log.view import Place
from penstock.model.ids import BEFORE_ALL, BatchId, Instance, Lsn, QueryId, StreamName, Substream

FIRST = Lsn(1)
NEWEST_RULES = Rules()


@dataclass
class State:
    """A view in memory. `do` decides and carries the plan out."""

    next_lsn: Lsn = FIRST
    next_stream_id: int = 1
    now_ms: int = 1_000
    rules: Rules = NEWEST_RULES
    steady_ms: int = 0
    streams: dict[StreamName, StreamRecord] = field(default_factory=dict)
    last_commits: dict[int, Commit] = field(default_factory=dict)
    producers: dict[tuple[int, str], ProducerRecord] = field(default_factory=dict)
    query_records: dict[QueryId, QueryRecord] = field(default_factory=dict)
    records: dict[tuple[str, int], Lsn] = field(default_factory=dict)
    run_instances: dict[tuple[QueryId, str], Instance] = field(default_factory=dict)
    marked_at: dict[tuple[QueryId, BatchId], Lsn] = field(default_factory=dict)
    offsets: dict[tuple[QueryId, BatchId], Lsn] = field(default_factory=dict)
    entries: dict[Lsn, Entry] = field(default_factory=dict)
    store_records: dict[tuple[QueryId, str], StoreRecord] = field(default_factory=dict)
    given: dict[int, Lsn] = field(default_factory=dict)

    def stream(self, name: StreamName) -> StreamRecord | None:
        return self.streams.get(name)

    def last_commit(self, stream: StreamRecord) -> Commit | None:
        return self.last_commits.get(stream.id)

    def producer(self, stream: StreamRecord, producer: str) -> ProducerRecord | None:
        return self.producers.get((stream.id, producer))

    def silent_producer(self) -> SilentProducer | None:
        return None

    def silent_recorder(self) -> SilentProducer | None:
        return None

    def query(self, query: QueryId) -> QueryRecord | None:
        return self.query_records.get(query)

    def run_instance(self, query: QueryId, run: str) -> Instance | None:
        return self.run_instances.get((query, run))

    def marked(self, query: QueryId, batch: BatchId) -> Lsn | None:
        return self.marked_at.get((query, batch))

    def places(self, count: int) -> tuple[Place, ...]:
        return tuple(Place(Lsn(self.next_lsn + each), self.now_ms) for each in range(count))

    def tail(self, tag: str) -> Lsn | None:
        tagged = (lsn for lsn, entry in self.entries.items() if tag in entry.head.tags)
        return max(tagged, default=None)

    def last_recorded(self, producer: str) -> int | None:
        return max((seq for name, seq in self.records if name == producer), default=None)

    def recorded(self, producer: str, seq: int) -> Lsn | None:
        return self.records.get((producer, seq))

    def head(self, lsn: Lsn) -> Head | None:
        return self.entries[lsn].head if lsn in self.entries else None

    def entry(self, lsn: Lsn) -> Entry | None:
        return self.entries.get(lsn)

    # What upkeep asks: nothing is trimmed, and nobody registered here, as its
    # decisions are tested on a real store.

    def queries(self) -> Iterator[QueryRecord]:
        return iter(self.query_records.values())

    def commit_at(self, stream: StreamRecord, lsn: int) -> Commit | None:
        return self.last_commits.get(stream.id)

    def commits(self, stream: StreamRecord, start: int, until: int) -> Iterator[Commit]:
        return iter(())

    def oldest_origin(self, stream: StreamRecord, after: int, until: int) -> int | None:
        return None

    def covered(self, stream: StreamRecord, substream: Substream, commit: Lsn) -> Covered | None:
        return None

    def tagged(self, tag: str, start: int = 0) -> Iterator[Lsn]:
        lsns = (lsn for lsn, entry in self.entries.items() if tag in entry.head.tags)
        return iter(sorted(lsn for lsn in lsns if lsn >= start))

    def marks(self, query: QueryId, first: BatchId) -> Iterator[Lsn]:
        keys = (key for key in sorted(self.marked_at) if key[0] == query and key[1] >= first)
        return (self.marked_at[key] for key in keys)

    def first_offsets(self, query: QueryId, first: BatchId) -> tuple[BatchId, Lsn] | None:
        batches = sorted(b for q, b in self.offsets if q == query and b >= first)
        return (batches[0], self.offsets[query, batches[0]]) if batches else None

    def given_below(self, start: int) -> Lsn:
        return self.given.get(start, BEFORE_ALL)

    def trimmed(self, point: str) -> Lsn:
        return BEFORE_ALL

    def consumer(self, reader: Reader, name: str, stream: StreamName) -> ConsumerRecord | None:
        return None

    def consumers(self) -> Iterator[ConsumerRecord]:
        return iter(())

    def waiting(self, query: QueryId) -> Iterator[Lsn]:
        return iter(())

    def store(self, query: QueryId, folder: str) -> StoreRecord | None:
        return self.store_records.get((query, folder))

    def stores(self, query: QueryId) -> Iterator[StoreRecord]:
        return (self.store_records[key] for key in sorted(self.store_records) if key[0] == query)

    def runs(self, query: QueryId) -> Iterator[Run]:
        return (Run(run, at) for (q, run), at in self.run_instances.items() if q == query)

    def deleted(self, stream_id: int) -> DeletedStream | None:
        return None

    def producers_until(self, stream: StreamRecord, last: Lsn) -> Iterator[str]:
        return iter(())

    def do(self, operation: Operation) -> Plan:
        plan = decide(operation, self)
        for entry in plan.entries:
            self.entries[entry.head.lsn] = entry
            self.next_lsn = Lsn(entry.head.lsn + 1)
        if plan.stream is not None:
            self.streams[plan.stream.name] = plan.stream
            self.next_stream_id += 1
        for _, showing in plan.showings:
            self.last_commits[showing.stream_id] = showing.commit
        if plan.producer is not None:
            self.producers[plan.producer[:2]] = plan.producer[2]
        if plan.query is not None:
            self.query_records[plan.query.query] = plan.query
        if plan.run is not None:
            self.run_instances[plan.run[:2]] = plan.run[2]
        if plan.mark is not None:
            self.marked_at[plan.mark[:2]] = plan.mark[2]
            for store in plan.stores:
                self.store_records[plan.mark[0], store.folder] = store
        if plan.offsets is not None:
            self.offsets[plan.offsets[:2]] = plan.offsets[2]
        if plan.recorded is not None:
            self.records[plan.recorded[:2]] = plan.recorded[2]
        return plan


def refused(state: State, operation: Operation, kind: type[PenstockError], fact: str) -> str:
    with pytest.raises(kind, match=fact) as caught:
        decide(operation, state)
    return caught.value.code
