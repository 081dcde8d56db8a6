"""Queries of the store: their runs, markers, offsets, state stores, and what waits for a marker."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from penstock.log.state import QueryRecord, Run, StoreRecord
from penstock.log.store import layout
from penstock.log.store.layout import lsn_of
from penstock.log.store.table_reader import TableReader
from penstock.model.ids import BatchId, Instance, Lsn, QueryId

_decode_query = msgspec.msgpack.Decoder(QueryRecord).decode
_decode_number = msgspec.msgpack.Decoder(int).decode
_decode_store = msgspec.msgpack.Decoder(StoreRecord).decode


class QueryTables(TableReader):
    """Reads the tables of this family."""

    def query(self, query: QueryId) -> QueryRecord | None:
        stored = self.get("queries", query.encode("utf-8"))
        return None if stored is None else _decode_query(stored)

    def queries(self) -> Iterator[QueryRecord]:
        with self.txn.cursor(db=self.tables["queries"]) as cursor:
            for value in cursor.iternext(keys=False, values=True):
                yield _decode_query(value)

    def run_instance(self, query: QueryId, run: str) -> Instance | None:
        stored = self.get("runs", layout.run_key(query, run))
        return None if stored is None else Instance(_decode_number(stored))

    def runs(self, query: QueryId) -> Iterator[Run]:
        """Every run that is remembered to have taken the query over."""
        prefix = layout.run_key(query, "")
        with self.txn.cursor(db=self.tables["runs"]) as cursor:
            has_row = cursor.set_range(prefix)
            while has_row and bytes(cursor.key()[: len(prefix)]) == prefix:
                run = bytes(cursor.key()[len(prefix) :]).decode("utf-8")
                yield Run(run, Instance(_decode_number(cursor.value())))
                has_row = cursor.next()

    def marked(self, query: QueryId, batch: BatchId) -> Lsn | None:
        stored = self.get("marks", layout.mark_key(query, batch))
        return None if stored is None else Lsn(_decode_number(stored))

    def marks(self, query: QueryId, first: BatchId) -> Iterator[Lsn]:
        """The markers of a query from batch `first` on, in order."""
        prefix = layout.mark_key(query, 0)[:-8]
        with self.txn.cursor(db=self.tables["marks"]) as cursor:
            has_row = cursor.set_range(layout.mark_key(query, first))
            while has_row and bytes(cursor.key()[:-8]) == prefix:
                yield Lsn(_decode_number(cursor.value()))
                has_row = cursor.next()

    def first_offsets(self, query: QueryId, first: BatchId) -> tuple[BatchId, Lsn] | None:
        """The newest offsets file of the first batch from `first` on that has one recorded."""
        prefix = layout.mark_key(query, 0)[:-8]
        with self.txn.cursor(db=self.tables["offsets"]) as cursor:
            if not cursor.set_range(layout.mark_key(query, first)):
                return None
            if bytes(cursor.key()[:-8]) != prefix:
                return None
            return BatchId(lsn_of(cursor.key())), Lsn(_decode_number(cursor.value()))

    def waiting(self, query: QueryId) -> Iterator[Lsn]:
        """Pending entries and files of a query that no marker names, in order."""
        prefix = layout.waiting_key(query, 0)[:-8]
        with self.txn.cursor(db=self.tables["waiting"]) as cursor:
            has_row = cursor.set_range(prefix)
            while has_row and bytes(cursor.key()[:-8]) == prefix:
                yield lsn_of(cursor.key())
                has_row = cursor.next()

    def store(self, query: QueryId, folder: str) -> StoreRecord | None:
        stored = self.get("stores", layout.store_key(query, folder))
        return None if stored is None else _decode_store(stored)

    def stores(self, query: QueryId) -> Iterator[StoreRecord]:
        """The state stores whose snapshots the log is to have, in the order of their folders."""
        prefix = layout.store_key(query, "")
        with self.txn.cursor(db=self.tables["stores"]) as cursor:
            has_row = cursor.set_range(prefix)
            while has_row and bytes(cursor.key()[: len(prefix)]) == prefix:
                yield _decode_store(cursor.value())
                has_row = cursor.next()
