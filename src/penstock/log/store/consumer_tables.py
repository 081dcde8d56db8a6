"""Consumers of the store, and how far each has come."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from penstock.log.state import ConsumerRecord, Reader
from penstock.log.store import layout
from penstock.log.store.table_reader import TableReader
from penstock.model.ids import StreamName

_decode_consumer = msgspec.msgpack.Decoder(ConsumerRecord).decode


class ConsumerTables(TableReader):
    """Reads the tables of this family."""

    def consumer(self, reader: Reader, name: str, stream: StreamName) -> ConsumerRecord | None:
        stored = self.get("consumers", layout.consumer_key(reader, name, stream))
        return None if stored is None else _decode_consumer(stored)

    def consumers(self) -> Iterator[ConsumerRecord]:
        with self.txn.cursor(db=self.tables["consumers"]) as cursor:
            for value in cursor.iternext(keys=False, values=True):
                yield _decode_consumer(value)
