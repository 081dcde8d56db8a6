"""Questions about upkeep, asked of the store: consumers, trim points, what waits for a marker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lmdb
import msgspec

from penstock.log.contract import StoreRecord, StreamRecord
from penstock.log.store import layout
from penstock.log.store.layout import Tables, lsn_of
from penstock.log.upkeep import ConsumerRecord, DeletedStream, Reader, Run
from penstock.model.ids import BEFORE_ALL, Instance, Lsn, QueryId, StreamName

_decode_consumer = msgspec.msgpack.Decoder(ConsumerRecord).decode
_decode_store = msgspec.msgpack.Decoder(StoreRecord).decode
_decode_deleted = msgspec.msgpack.Decoder(DeletedStream).decode
_decode_number = msgspec.msgpack.Decoder(int).decode
_decode_gaps = msgspec.msgpack.Decoder(list[tuple[int, int]]).decode
GAPS = b"gaps"


class KeptQuestions:
    """The part of a `StoreView` that upkeep asks."""

    txn: lmdb.Transaction
    tables: Tables

    def _found(self, table: str, key: bytes) -> Any:
        return self.txn.get(key, db=self.tables[table])

    def trimmed(self, point: str) -> Lsn:
        """Up to where a stream (`s/NAME`) or a tag is no longer whole."""
        found = self._found("trims", point.encode("utf-8"))
        return BEFORE_ALL if found is None else Lsn(_decode_number(found))

    def consumer(self, reader: Reader, name: str, stream: StreamName) -> ConsumerRecord | None:
        found = self._found("consumers", layout.consumer_key(reader, name, stream))
        return None if found is None else _decode_consumer(found)

    def consumers(self) -> Iterator[ConsumerRecord]:
        with self.txn.cursor(db=self.tables["consumers"]) as cursor:
            for value in cursor.iternext(keys=False, values=True):
                yield _decode_consumer(value)

    def waiting(self, query: QueryId) -> Iterator[Lsn]:
        """Pending entries and files of a query that no marker names, in order."""
        prefix = layout.waiting_key(query, 0)[:-8]
        with self.txn.cursor(db=self.tables["waiting"]) as cursor:
            there = cursor.set_range(prefix)
            while there and bytes(cursor.key()[:-8]) == prefix:
                yield lsn_of(cursor.key())
                there = cursor.next()

    def store(self, query: QueryId, folder: str) -> StoreRecord | None:
        found = self._found("stores", layout.store_key(query, folder))
        return None if found is None else _decode_store(found)

    def stores(self, query: QueryId) -> Iterator[StoreRecord]:
        """The state stores whose snapshots the log is to have, in the order of their folders."""
        prefix = layout.store_key(query, "")
        with self.txn.cursor(db=self.tables["stores"]) as cursor:
            there = cursor.set_range(prefix)
            while there and bytes(cursor.key()[: len(prefix)]) == prefix:
                yield _decode_store(cursor.value())
                there = cursor.next()

    def runs(self, query: QueryId) -> Iterator[Run]:
        """Every run that is remembered to have taken the query over."""
        prefix = layout.run_key(query, "")
        with self.txn.cursor(db=self.tables["runs"]) as cursor:
            there = cursor.set_range(prefix)
            while there and bytes(cursor.key()[: len(prefix)]) == prefix:
                run = bytes(cursor.key()[len(prefix) :]).decode("utf-8")
                yield Run(run, Instance(_decode_number(cursor.value())))
                there = cursor.next()

    def deleted(self, stream_id: int) -> DeletedStream | None:
        found = self._found("deleted", layout.stream_prefix(stream_id))
        return None if found is None else _decode_deleted(found)

    def all_deleted(self) -> Iterator[DeletedStream]:
        """Streams that are gone and may have left entries."""
        with self.txn.cursor(db=self.tables["deleted"]) as cursor:
            for value in cursor.iternext(keys=False, values=True):
                yield _decode_deleted(value)

    def producers_until(self, stream: StreamRecord, last: Lsn) -> Iterator[str]:
        """Producers whose last append to the stream is at or before `last`."""
        prefix = layout.stream_prefix(stream.id)
        with self.txn.cursor(db=self.tables["producer_uses"]) as cursor:
            there = cursor.first()
            while there and lsn_of(cursor.key()) <= last:
                if bytes(cursor.value()[:4]) == prefix:
                    yield bytes(cursor.value()[4:]).decode("utf-8")
                there = cursor.next()

    def gaps(self) -> list[tuple[int, int]]:
        """Places that a restored log does not have: each from the first to the last one."""
        found = self._found("counters", GAPS)
        return [] if found is None else _decode_gaps(found)
