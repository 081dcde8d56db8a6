"""Carrying plans out in one write transaction: what they put, and what they remove."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.log.contract import Entry
from penstock.log.decide.records import SEQ_MAX
from penstock.log.plan import Plan, ProducerRecord, Removal, Showing
from penstock.log.rules import RECORD_WINDOW
from penstock.log.store import layout
from penstock.log.store.layout import ProducerState, RecordedState, lsn_key, lsn_of
from penstock.log.store.view import StoreView
from penstock.model.ids import BatchId, Lsn, QueryId

_encode = msgspec.msgpack.Encoder().encode
_decode_producer = msgspec.msgpack.Decoder(ProducerState).decode
_decode_recorded = msgspec.msgpack.Decoder(RecordedState).decode


class Effects:
    """Carries plans out in one write transaction."""

    def __init__(self, view: StoreView) -> None:
        self._view = view

    def put(self, table: str, key: bytes, value: bytes, *, append: bool = False) -> None:
        self._view.txn.put(key, value, db=self._view.tables[table], append=append)

    def put_counter(self, name: str, value: int) -> None:
        self.put("counters", name.encode("ascii"), _encode(value))

    def apply(self, plan: Plan) -> None:
        """Remove what the plan removes, then put everything it names."""
        if plan.removal is not None:
            remove(self._view, plan.removal)
        for consumer in plan.consumers:
            key = layout.consumer_key(consumer.reader, consumer.name, consumer.stream)
            self.put("consumers", key, _encode(consumer))
        if plan.deleted is not None:
            self.put("deleted", layout.stream_prefix(plan.deleted.id), _encode(plan.deleted))
        if plan.entries:
            self._put_entries(plan.entries)
        if plan.stream is not None:
            self.put("streams", plan.stream.name.encode("utf-8"), _encode(plan.stream))
            following = max(self._view.next_stream_id, plan.stream.id + 1)
            self.put_counter("next_stream_id", following)
        for _, showing in plan.showings:
            self._put_showing(showing)
        if plan.producer is not None:
            self.put_producer(*plan.producer)
        if plan.recorded is not None:
            self._put_recorded(*plan.recorded)
        if plan.aux is not None:
            lsn, aux = plan.aux
            self.put("aux", lsn_key(lsn), aux)
        self._put_query(plan)

    def _put_query(self, plan: Plan) -> None:
        if plan.query is not None:
            self.put("queries", plan.query.query.encode("utf-8"), _encode(plan.query))
        if plan.run is not None:
            query, run, instance = plan.run
            self.put("runs", layout.run_key(query, run), _encode(instance))
        if plan.mark is not None:
            marked, batch, lsn = plan.mark
            self.put("marks", layout.mark_key(marked, batch), _encode(lsn))
            self._forget_offsets(marked, batch)
            for entry in plan.named:
                key = layout.waiting_key(marked, entry)
                self._view.txn.delete(key, db=self._view.tables["waiting"])
            for entry in plan.loosed:
                self.put("waiting", layout.waiting_key(marked, entry), b"")
            for store in plan.stores:
                self.put("stores", layout.store_key(marked, store.folder), _encode(store))
        if plan.offsets is not None:
            self.put_offsets(*plan.offsets)

    def _put_showing(self, showing: Showing) -> None:
        commit = showing.commit
        self.put("commits", layout.commit_key(showing.stream_id, commit.lsn), _encode(commit))
        for substream, covered in showing.covered:
            key = layout.visible_key(showing.stream_id, substream, commit.lsn)
            self.put("visible", key, _encode(covered))
        if commit.origin_at_ms is not None:
            link = self._view.origin_link(showing.stream_id, commit.origin_at_ms)
            self.put("origins", layout.commit_key(showing.stream_id, commit.lsn), _encode(link))

    def put_offsets(self, query: QueryId, batch: BatchId, lsn: Lsn) -> None:
        self.put("offsets", layout.mark_key(query, batch), _encode(lsn))

    def _forget_offsets(self, query: QueryId, last: BatchId) -> None:
        """What is marked needs no record of its own: the marker names the file."""
        while True:
            offsets = self._view.first_offsets(query, BatchId(0))
            if offsets is None or offsets[0] > last:
                return
            key = layout.mark_key(query, offsets[0])
            self._view.txn.delete(key, db=self._view.tables["offsets"])

    def _put_entries(self, entries: Sequence[Entry]) -> None:
        next_lsn = self._view.next_lsn
        for entry in entries:
            lsn = entry.head.lsn
            # An operation's first entries may have waited for its last while others were put.
            self.put("entries", lsn_key(lsn), layout.encode_entry(entry), append=lsn >= next_lsn)
            for tag in entry.head.tags:
                self.put("tags", layout.tag_key(tag, lsn), b"")
            if entry.head.kind in ("pending", "file") and entry.head.producer is not None:
                self.put("waiting", layout.waiting_key(entry.head.producer, lsn), b"")
        last = entries[-1].head
        self.put_counter("next_lsn", last.lsn + 1)
        self.put_counter("arrived_at_ms", last.arrived_at_ms)

    def put_producer(self, stream_id: int, producer: str, record: ProducerRecord) -> None:
        view, key = self._view, layout.producer_key(stream_id, producer)
        before = view.get("producers", key)
        if before is not None:
            position = _decode_producer(before).answer.position
            view.txn.delete(lsn_key(position), db=view.tables["producer_uses"])
        state = ProducerState(record.sequence, record.answer, record.heard_ms)
        self.put("producers", key, _encode(state))
        self.put("producer_uses", lsn_key(record.answer.position), key)

    def _put_recorded(self, producer: str, seq: int, lsn: Lsn, heard_ms: int) -> None:
        """Remember a record's sequence, and forget those out of the window."""
        view = self._view
        key = producer.encode("utf-8")
        before = view.get("record_producers", key)
        last = seq
        if before is not None:
            state = _decode_recorded(before)
            last = max(seq, state.last)
            view.txn.delete(lsn_key(state.lsn), db=view.tables["record_uses"])
        self.put("record_producers", key, _encode(RecordedState(last, lsn, heard_ms)))
        self.put("record_uses", lsn_key(lsn), key)
        self.put("record_seqs", layout.recorded_key(producer, seq), _encode(lsn))
        _forget_seqs(view, key, last - RECORD_WINDOW)


def _forget_seqs(view: StoreView, producer: bytes, last: int) -> None:
    prefix = producer + b"\x00"
    with view.txn.cursor(db=view.tables["record_seqs"]) as cursor:
        has_row = cursor.set_range(prefix)
        while has_row and bytes(cursor.key()[:-8]) == prefix and lsn_of(cursor.key()) <= last:
            has_row = cursor.delete() and bool(cursor.key())


def remove(view: StoreView, removal: Removal) -> None:
    """Delete every row the removal names, and each entry that has no tag left."""
    for point, lsn in removal.points:
        # Entries go with their commits, and so one may go after another with a later place.
        furthest = max(lsn, view.trimmed(point))
        view.txn.put(point.encode("utf-8"), _encode(furthest), db=view.tables["trims"])
    for stream_id, producer in removal.producers:
        _remove_producer(view, layout.producer_key(stream_id, producer))
    for key in removal.silent:
        _remove_producer(view, key)
    for key in removal.silent_recorders:
        _remove_recorder(view, key)
    for table, keys in _keys(removal).items():
        for key in keys:
            view.txn.delete(key, db=view.tables[table])
    untag(view, removal.tags)


def untag(view: StoreView, tags: tuple[tuple[str, Lsn], ...]) -> None:
    """Delete rows of the tag index, and each entry with the last of its own."""
    for tag, lsn in tags:
        view.txn.delete(layout.tag_key(tag, lsn), db=view.tables["tags"])
    for lsn in dict.fromkeys(lsn for _, lsn in tags):
        head = view.head(lsn)
        if head is None or any(
            view.get("tags", layout.tag_key(tag, lsn)) is not None for tag in head.tags
        ):
            continue
        view.txn.delete(lsn_key(lsn), db=view.tables["entries"])
        view.txn.delete(lsn_key(lsn), db=view.tables["aux"])
        if head.kind in ("pending", "file") and head.producer is not None:
            key = layout.waiting_key(head.producer, lsn)
            view.txn.delete(key, db=view.tables["waiting"])


def _keys(removal: Removal) -> dict[str, list[bytes]]:
    return {
        "commits": [layout.commit_key(*each) for each in removal.commits],
        "origins": [layout.commit_key(*each) for each in removal.commits],
        "visible": [layout.visible_key(*each) for each in removal.visible],
        "consumers": [layout.consumer_key(*each) for each in removal.consumers],
        "marks": [layout.mark_key(*each) for each in removal.marks],
        "offsets": [layout.mark_key(*each) for each in removal.offsets],
        "runs": [layout.run_key(*each) for each in removal.runs],
        "stores": [layout.store_key(*each) for each in removal.stores],
        "streams": [] if removal.stream is None else [removal.stream.encode("utf-8")],
        "queries": [] if removal.query is None else [removal.query.encode("utf-8")],
        "deleted": [] if removal.swept is None else [layout.stream_prefix(removal.swept)],
    }


def _remove_producer(view: StoreView, key: bytes) -> None:
    stored = view.get("producers", key)
    if stored is not None:
        position = _decode_producer(stored).answer.position
        view.txn.delete(lsn_key(position), db=view.tables["producer_uses"])
        view.txn.delete(key, db=view.tables["producers"])


def _remove_recorder(view: StoreView, key: bytes) -> None:
    stored = view.get("record_producers", key)
    if stored is not None:
        view.txn.delete(lsn_key(_decode_recorded(stored).lsn), db=view.tables["record_uses"])
        view.txn.delete(key, db=view.tables["record_producers"])
        _forget_seqs(view, key, SEQ_MAX)
