"""The state of a log written down by hand, for tests of decisions."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from penstock.errors import PenstockError
from penstock.log.contract import Commit, Entry, Head, Operation, QueryRecord, StreamRecord
from penstock.log.decide import decide
from penstock.log.view import Plan, ProducerRecord
from penstock.model.ids import BatchId, Instance, Lsn, QueryId, StreamName

FIRST = Lsn(1)


@dataclass
class State:
    """A view in memory. `do` decides and carries the plan out."""

    next_lsn: Lsn = FIRST
    next_stream_id: int = 1
    now_ms: int = 1_000
    streams: dict[StreamName, StreamRecord] = field(default_factory=dict)
    commits: dict[int, Commit] = field(default_factory=dict)
    producers: dict[tuple[int, str], ProducerRecord] = field(default_factory=dict)
    queries: dict[QueryId, QueryRecord] = field(default_factory=dict)
    runs: dict[tuple[QueryId, str], Instance] = field(default_factory=dict)
    marks: dict[tuple[QueryId, BatchId], Lsn] = field(default_factory=dict)
    offsets: dict[tuple[QueryId, BatchId], Lsn] = field(default_factory=dict)
    entries: dict[Lsn, Entry] = field(default_factory=dict)

    def stream(self, name: StreamName) -> StreamRecord | None:
        return self.streams.get(name)

    def last_commit(self, stream: StreamRecord) -> Commit | None:
        return self.commits.get(stream.id)

    def producer(self, stream: StreamRecord, producer: str) -> ProducerRecord | None:
        return self.producers.get((stream.id, producer))

    def query(self, query: QueryId) -> QueryRecord | None:
        return self.queries.get(query)

    def run_instance(self, query: QueryId, run: str) -> Instance | None:
        return self.runs.get((query, run))

    def marked(self, query: QueryId, batch: BatchId) -> Lsn | None:
        return self.marks.get((query, batch))

    def head(self, lsn: Lsn) -> Head | None:
        return self.entries[lsn].head if lsn in self.entries else None

    def entry(self, lsn: Lsn) -> Entry | None:
        return self.entries.get(lsn)

    def do(self, operation: Operation) -> Plan:
        plan = decide(operation, self)
        for entry in plan.entries:
            self.entries[entry.head.lsn] = entry
            self.next_lsn = Lsn(entry.head.lsn + 1)
        if plan.stream is not None:
            self.streams[plan.stream.name] = plan.stream
            self.next_stream_id += 1
        for _, showing in plan.showings:
            self.commits[showing.stream_id] = showing.commit
        if plan.producer is not None:
            self.producers[plan.producer[:2]] = plan.producer[2]
        if plan.query is not None:
            self.queries[plan.query.query] = plan.query
        if plan.run is not None:
            self.runs[plan.run[:2]] = plan.run[2]
        if plan.mark is not None:
            self.marks[plan.mark[:2]] = plan.mark[2]
        if plan.offsets is not None:
            self.offsets[plan.offsets[:2]] = plan.offsets[2]
        return plan


def refused(state: State, operation: Operation, kind: type[PenstockError], fact: str) -> str:
    with pytest.raises(kind, match=fact) as caught:
        decide(operation, state)
    return caught.value.code
