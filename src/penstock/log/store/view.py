"""The store seen through one transaction: the `View` that decisions and readers look at."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import lmdb
import msgspec

from penstock.log.contract import (
    Commit,
    Covered,
    Entry,
    Head,
    QueryRecord,
    StreamRecord,
)
from penstock.log.store import layout
from penstock.log.store.kept import KeptQuestions
from penstock.log.store.layout import (
    Buffer,
    PartTag,
    ProducerState,
    RecordedState,
    Tables,
    lsn_key,
    lsn_of,
)
from penstock.log.view import Place, ProducerRecord
from penstock.model.ids import BatchId, Instance, Lsn, QueryId, StreamName, Substream

_decode_stream = msgspec.msgpack.Decoder(StreamRecord).decode
_decode_commit = msgspec.msgpack.Decoder(Commit).decode
_decode_covered = msgspec.msgpack.Decoder(Covered).decode
_decode_producer = msgspec.msgpack.Decoder(ProducerState).decode
_decode_recorded = msgspec.msgpack.Decoder(RecordedState).decode
_decode_query = msgspec.msgpack.Decoder(QueryRecord).decode
_decode_part_tag = msgspec.msgpack.Decoder(PartTag).decode
_decode_number = msgspec.msgpack.Decoder(int).decode


class StoreView(KeptQuestions):
    """One transaction's state. Payload views die with the transaction; copy what must live on."""

    def __init__(
        self,
        txn: lmdb.Transaction,
        tables: Tables,
        wall_ms: int = 0,
        places: tuple[Place, ...] | None = None,
    ) -> None:
        """`places` are those the operation already has; without them the next ones are given."""
        self.txn = txn
        self.tables = tables
        self._wall_ms = wall_ms
        self._places = places

    def get(self, table: str, key: bytes) -> Any:
        return self.txn.get(key, db=self.tables[table])

    def counter(self, name: str, default: int) -> int:
        found = self.get("counters", name.encode("ascii"))
        return default if found is None else _decode_number(found)

    @property
    def next_lsn(self) -> Lsn:
        return Lsn(self.counter("next_lsn", 1))

    def settled(self, tags: Container[str]) -> Lsn:
        """No entry with any of the tags is still to come at or before this place: an entry of an
        operation whose other entries are on their way has its place and is not there yet."""
        with self.txn.cursor(db=self.tables["parts"]) as cursor:
            for key, part in cursor:
                tag = _decode_part_tag(part).tag
                if tag is None or tag in tags:
                    return Lsn(lsn_of(key) - 1)
        return Lsn(self.next_lsn - 1)

    def places(self, count: int) -> tuple[Place, ...]:
        if self._places is not None and count > 0:
            assert count == len(self._places), f"{count} entries for {len(self._places)} places"
            return self._places
        first, now_ms = self.next_lsn, self.now_ms
        return tuple(Place(Lsn(first + each), now_ms) for each in range(count))

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

    def tail(self, tag: str) -> Lsn | None:
        """The last entry with the tag, trimmed or not."""
        with self.txn.cursor(db=self.tables["tags"]) as cursor:
            there = cursor.set_range(layout.tag_key(tag, (1 << 64) - 1))
            if cursor.prev() if there else cursor.last():
                key = bytes(cursor.key())
                if key[:-8] == layout.tag_key(tag, 0)[:-8]:
                    return lsn_of(key)
        return self.trimmed(tag) or None

    def last_recorded(self, producer: str) -> int | None:
        found = self.get("record_producers", producer.encode("utf-8"))
        return None if found is None else _decode_recorded(found).last

    def recorded(self, producer: str, seq: int) -> Lsn | None:
        found = self.get("record_seqs", layout.recorded_key(producer, seq))
        return None if found is None else Lsn(_decode_number(found))

    def aux(self, lsn: Lsn) -> bytes | None:
        """The auxiliary data last set on an entry."""
        found = self.get("aux", lsn_key(lsn))
        return None if found is None else bytes(found)

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
        return self.head_and_payload(lsn)[1]

    def head_and_payload(self, lsn: Lsn) -> tuple[Head, Buffer]:
        """As `payload`, with the entry's head."""
        found = self.stored(lsn)
        if found is None:
            raise layout.damaged(lsn, "an index names it and it is not there")
        return layout.decode_payload(lsn, found)
