"""Streams of the store, their commits, what each shows, and their producers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from penstock.log.plan import ProducerRecord
from penstock.log.state import Commit, Covered, DeletedStream, StreamRecord
from penstock.log.store import layout
from penstock.log.store.layout import ProducerState, lsn_of
from penstock.log.store.table_reader import TableReader
from penstock.model.ids import Lsn, StreamName, Substream

_decode_stream = msgspec.msgpack.Decoder(StreamRecord).decode
_decode_commit = msgspec.msgpack.Decoder(Commit).decode
_decode_covered = msgspec.msgpack.Decoder(Covered).decode
_decode_producer = msgspec.msgpack.Decoder(ProducerState).decode
_decode_deleted = msgspec.msgpack.Decoder(DeletedStream).decode


class StreamTables(TableReader):
    """Reads the tables of this family."""

    @property
    def next_stream_id(self) -> int:
        return self.counter("next_stream_id", 1)

    def stream(self, name: StreamName) -> StreamRecord | None:
        stored = self.get("streams", name.encode("utf-8"))
        return None if stored is None else _decode_stream(stored)

    def streams(self) -> Iterator[StreamRecord]:
        with self.txn.cursor(db=self.tables["streams"]) as cursor:
            for value in cursor.iternext(keys=False, values=True):
                yield _decode_stream(value)

    def last_commit(self, stream: StreamRecord) -> Commit | None:
        return self.commit_at(stream, (1 << 64) - 1)

    def commit_at(self, stream: StreamRecord, lsn: int) -> Commit | None:
        """The last commit at or before `lsn`."""
        with self.txn.cursor(db=self.tables["commits"]) as cursor:
            key = layout.commit_key(stream.id, lsn)
            has_row = cursor.set_range(key)
            if not (has_row and bytes(cursor.key()) == key) and not (
                cursor.prev() if has_row else cursor.last()
            ):
                return None
            if bytes(cursor.key()[:4]) != layout.stream_prefix(stream.id):
                return None
            return _decode_commit(cursor.value())

    def commits(self, stream: StreamRecord, start: int, until: int) -> Iterator[Commit]:
        """Every commit from `start` to `until`, both included, in order."""
        with self.txn.cursor(db=self.tables["commits"]) as cursor:
            last = layout.commit_key(stream.id, until)
            has_row = cursor.set_range(layout.commit_key(stream.id, start))
            while has_row and bytes(cursor.key()) <= last:
                yield _decode_commit(cursor.value())
                has_row = cursor.next()

    def covered(self, stream: StreamRecord, substream: Substream, commit: Lsn) -> Covered | None:
        stored = self.get("visible", layout.visible_key(stream.id, substream, commit))
        return None if stored is None else _decode_covered(stored)

    def covered_between(
        self, stream: StreamRecord, substream: Substream, start: int, until: int
    ) -> Iterator[tuple[Lsn, Covered]]:
        """Entries that commits from `start` to `until`, both included, show in one substream."""
        with self.txn.cursor(db=self.tables["visible"]) as cursor:
            last = layout.visible_key(stream.id, substream, until)
            has_row = cursor.set_range(layout.visible_key(stream.id, substream, start))
            while has_row and bytes(cursor.key()) <= last:
                yield lsn_of(cursor.key()), _decode_covered(cursor.value())
                has_row = cursor.next()

    def producer(self, stream: StreamRecord, producer: str) -> ProducerRecord | None:
        stored = self.get("producers", layout.producer_key(stream.id, producer))
        if stored is None:
            return None
        state = _decode_producer(stored)
        return ProducerRecord(state.sequence, state.answer, state.heard_ms)

    def producers_until(self, stream: StreamRecord, last: Lsn) -> Iterator[str]:
        """Producers whose last append to the stream is at or before `last`."""
        prefix = layout.stream_prefix(stream.id)
        with self.txn.cursor(db=self.tables["producer_uses"]) as cursor:
            has_row = cursor.first()
            while has_row and lsn_of(cursor.key()) <= last:
                if bytes(cursor.value()[:4]) == prefix:
                    yield bytes(cursor.value()[4:]).decode("utf-8")
                has_row = cursor.next()

    def deleted(self, stream_id: int) -> DeletedStream | None:
        stored = self.get("deleted", layout.stream_prefix(stream_id))
        return None if stored is None else _decode_deleted(stored)

    def all_deleted(self) -> Iterator[DeletedStream]:
        """Streams that are gone and may have left entries."""
        with self.txn.cursor(db=self.tables["deleted"]) as cursor:
            for value in cursor.iternext(keys=False, values=True):
                yield _decode_deleted(value)
