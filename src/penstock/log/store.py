"""The store seen through one transaction: a `View` for decisions, and carrying out their plans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lmdb
import msgspec

from penstock.log import layout
from penstock.log.contract import (
    Commit,
    Covered,
    Entry,
    Head,
    QueryRecord,
    StreamRecord,
)
from penstock.log.layout import Buffer, ProducerState, Tables, lsn_key, lsn_of
from penstock.log.view import Plan, ProducerRecord
from penstock.model.ids import BatchId, Instance, Lsn, QueryId, StreamName, Substream

_encode = msgspec.msgpack.Encoder().encode
_decode_stream = msgspec.msgpack.Decoder(StreamRecord).decode
_decode_commit = msgspec.msgpack.Decoder(Commit).decode
_decode_covered = msgspec.msgpack.Decoder(Covered).decode
_decode_producer = msgspec.msgpack.Decoder(ProducerState).decode
_decode_query = msgspec.msgpack.Decoder(QueryRecord).decode
_decode_number = msgspec.msgpack.Decoder(int).decode


class StoreView:
    """One transaction's state. Payload views die with the transaction; copy what must live on."""

    def __init__(self, txn: lmdb.Transaction, tables: Tables, wall_ms: int = 0) -> None:
        self.txn = txn
        self.tables = tables
        self._wall_ms = wall_ms

    def get(self, table: str, key: bytes) -> Any:
        return self.txn.get(key, db=self.tables[table])

    def counter(self, name: str, default: int) -> int:
        found = self.get("counters", name.encode("ascii"))
        return default if found is None else _decode_number(found)

    @property
    def next_lsn(self) -> Lsn:
        return Lsn(self.counter("next_lsn", 1))

    @property
    def next_stream_id(self) -> int:
        return self.counter("next_stream_id", 1)

    @property
    def now_ms(self) -> int:
        return max(self._wall_ms, self.counter("arrived_at_ms", 0))

    def stream(self, name: StreamName) -> StreamRecord | None:
        found = self.get("streams", name.encode("utf-8"))
        return None if found is None else _decode_stream(found)

    def streams(self) -> Iterator[StreamRecord]:
        with self.txn.cursor(db=self.tables["streams"]) as cursor:
            for value in cursor.iternext(keys=False, values=True):
                yield _decode_stream(value)

    def queries(self) -> Iterator[QueryRecord]:
        with self.txn.cursor(db=self.tables["queries"]) as cursor:
            for value in cursor.iternext(keys=False, values=True):
                yield _decode_query(value)

    def last_commit(self, stream: StreamRecord) -> Commit | None:
        return self.commit_at(stream, (1 << 64) - 1)

    def commit_at(self, stream: StreamRecord, lsn: int) -> Commit | None:
        """The last commit at or before `lsn`."""
        with self.txn.cursor(db=self.tables["commits"]) as cursor:
            key = layout.commit_key(stream.id, lsn)
            there = cursor.set_range(key)
            if not (there and bytes(cursor.key()) == key) and not (
                cursor.prev() if there else cursor.last()
            ):
                return None
            if bytes(cursor.key()[:4]) != layout.stream_prefix(stream.id):
                return None
            return _decode_commit(cursor.value())

    def commits(self, stream: StreamRecord, start: int, until: int) -> Iterator[Commit]:
        """Every commit from `start` to `until`, both included, in order."""
        with self.txn.cursor(db=self.tables["commits"]) as cursor:
            last = layout.commit_key(stream.id, until)
            there = cursor.set_range(layout.commit_key(stream.id, start))
            while there and bytes(cursor.key()) <= last:
                yield _decode_commit(cursor.value())
                there = cursor.next()

    def covered(self, stream: StreamRecord, substream: Substream, commit: Lsn) -> Covered | None:
        found = self.get("visible", layout.visible_key(stream.id, substream, commit))
        return None if found is None else _decode_covered(found)

    def covered_between(
        self, stream: StreamRecord, substream: Substream, start: int, until: int
    ) -> Iterator[tuple[Lsn, Covered]]:
        """What commits from `start` to `until`, both included, show in one substream."""
        with self.txn.cursor(db=self.tables["visible"]) as cursor:
            last = layout.visible_key(stream.id, substream, until)
            there = cursor.set_range(layout.visible_key(stream.id, substream, start))
            while there and bytes(cursor.key()) <= last:
                yield lsn_of(cursor.key()), _decode_covered(cursor.value())
                there = cursor.next()

    def producer(self, stream: StreamRecord, producer: str) -> ProducerRecord | None:
        found = self.get("producers", layout.producer_key(stream.id, producer))
        if found is None:
            return None
        state = _decode_producer(found)
        return ProducerRecord(state.sequence, state.answer)

    def query(self, query: QueryId) -> QueryRecord | None:
        found = self.get("queries", query.encode("utf-8"))
        return None if found is None else _decode_query(found)

    def run_instance(self, query: QueryId, run: str) -> Instance | None:
        found = self.get("runs", layout.run_key(query, run))
        return None if found is None else Instance(_decode_number(found))

    def marked(self, query: QueryId, batch: BatchId) -> Lsn | None:
        found = self.get("marks", layout.mark_key(query, batch))
        return None if found is None else Lsn(_decode_number(found))

    def marks(self, query: QueryId, first: BatchId) -> Iterator[Lsn]:
        """The markers of a query from batch `first` on, in order."""
        prefix = layout.mark_key(query, 0)[:-8]
        with self.txn.cursor(db=self.tables["marks"]) as cursor:
            there = cursor.set_range(layout.mark_key(query, first))
            while there and bytes(cursor.key()[:-8]) == prefix:
                yield Lsn(_decode_number(cursor.value()))
                there = cursor.next()

    def first_offsets(self, query: QueryId, first: BatchId) -> tuple[BatchId, Lsn] | None:
        """The newest offsets file of the first batch from `first` on that has one recorded."""
        prefix = layout.mark_key(query, 0)[:-8]
        with self.txn.cursor(db=self.tables["offsets"]) as cursor:
            if not cursor.set_range(layout.mark_key(query, first)):
                return None
            if bytes(cursor.key()[:-8]) != prefix:
                return None
            return BatchId(lsn_of(cursor.key())), Lsn(_decode_number(cursor.value()))

    def tagged(self, tag: str, start: int = 0) -> Iterator[Lsn]:
        """Every entry with the tag, from `start` on, in order."""
        prefix = layout.tag_key(tag, 0)[:-8]
        with self.txn.cursor(db=self.tables["tags"]) as cursor:
            there = cursor.set_range(layout.tag_key(tag, start))
            while there and bytes(cursor.key()[:-8]) == prefix:
                yield lsn_of(cursor.key())
                there = cursor.next()

    def stored(self, lsn: Lsn) -> Buffer | None:
        found: Buffer | None = self.get("entries", lsn_key(lsn))
        return found

    def head(self, lsn: Lsn) -> Head | None:
        found = self.stored(lsn)
        return None if found is None else layout.decode_entry_head(lsn, found)[0]

    def entry(self, lsn: Lsn) -> Entry | None:
        found = self.stored(lsn)
        if found is None:
            return None
        head, payload = layout.decode_payload(lsn, found)
        return Entry(head, bytes(payload))

    def payload(self, lsn: Lsn) -> Buffer:
        """The verified payload of an entry an index names; absent is damage."""
        found = self.stored(lsn)
        if found is None:
            raise layout.damaged(lsn, "an index names it and it is not there")
        return layout.decode_payload(lsn, found)[1]


class Effects:
    """Carries plans out in one write transaction."""

    def __init__(self, view: StoreView, producers_max: int) -> None:
        self._view = view
        self._producers_max = producers_max

    def put(self, table: str, key: bytes, value: bytes, *, append: bool = False) -> None:
        self._view.txn.put(key, value, db=self._view.tables[table], append=append)

    def put_counter(self, name: str, value: int) -> None:
        self.put("counters", name.encode("ascii"), _encode(value))

    def apply(self, plan: Plan) -> None:
        """Put everything the plan names."""
        for entry in plan.entries:
            self._put_entry(entry)
        if plan.entries:
            last = plan.entries[-1].head
            self.put_counter("next_lsn", last.lsn + 1)
            self.put_counter("arrived_at_ms", last.arrived_at_ms)
        if plan.stream is not None:
            self.put("streams", plan.stream.name.encode("utf-8"), _encode(plan.stream))
            self.put_counter("next_stream_id", plan.stream.id + 1)
        for _, showing in plan.showings:
            commit = showing.commit
            self.put("commits", layout.commit_key(showing.stream_id, commit.lsn), _encode(commit))
            for substream, covered in showing.covered:
                key = layout.visible_key(showing.stream_id, substream, commit.lsn)
                self.put("visible", key, _encode(covered))
        if plan.producer is not None:
            self.put_producer(*plan.producer)
        if plan.query is not None:
            self.put("queries", plan.query.query.encode("utf-8"), _encode(plan.query))
        if plan.run is not None:
            query, run, instance = plan.run
            self.put("runs", layout.run_key(query, run), _encode(instance))
        if plan.mark is not None:
            marked, batch, lsn = plan.mark
            self.put("marks", layout.mark_key(marked, batch), _encode(lsn))
            self._forget_offsets(marked, batch)
        if plan.offsets is not None:
            self.put_offsets(*plan.offsets)

    def put_offsets(self, query: QueryId, batch: BatchId, lsn: Lsn) -> None:
        self.put("offsets", layout.mark_key(query, batch), _encode(lsn))

    def _forget_offsets(self, query: QueryId, last: BatchId) -> None:
        """What is marked needs no record of its own: the marker names the file."""
        while True:
            found = self._view.first_offsets(query, BatchId(0))
            if found is None or found[0] > last:
                return
            key = layout.mark_key(query, found[0])
            self._view.txn.delete(key, db=self._view.tables["offsets"])

    def _put_entry(self, entry: Entry) -> None:
        lsn = entry.head.lsn
        self.put("entries", lsn_key(lsn), layout.encode_entry(entry), append=True)
        for tag in entry.head.tags:
            self.put("tags", layout.tag_key(tag, lsn), b"")

    def put_producer(self, stream_id: int, producer: str, record: ProducerRecord) -> None:
        """Remember the producer, and forget the one unused longest when there are too many."""
        view, key = self._view, layout.producer_key(stream_id, producer)
        uses, producers = view.tables["producer_uses"], view.tables["producers"]
        before = view.get("producers", key)
        if before is not None:
            view.txn.delete(lsn_key(_decode_producer(before).answer.position), db=uses)
        self.put("producers", key, _encode(ProducerState(record.sequence, record.answer)))
        self.put("producer_uses", lsn_key(record.answer.position), key)
        if view.txn.stat(producers)["entries"] > self._producers_max:
            with view.txn.cursor(db=uses) as cursor:
                if cursor.first():
                    view.txn.delete(bytes(cursor.value()), db=producers)
                    cursor.delete()
