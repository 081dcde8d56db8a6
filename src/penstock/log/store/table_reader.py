"""Reading the tables of the store within one transaction."""

from __future__ import annotations

from typing import Any

import lmdb
import msgspec

from penstock.log.store.layout import Tables
from penstock.model.ids import KEY_BYTES_MAX

_decode_number = msgspec.msgpack.Decoder(int).decode


class TableReader:
    """One transaction on the tables; what is read of each family is in a class of its own."""

    txn: lmdb.Transaction
    tables: Tables

    def get(self, table: str, key: bytes) -> Any:
        """The value under a key, or None, as under a text that cannot be a key."""
        if not 1 <= len(key) <= KEY_BYTES_MAX:
            return None
        return self.txn.get(key, db=self.tables[table])

    def counter(self, name: str, default: int) -> int:
        """One of the log's own numbers, such as the next place."""
        stored = self.get("counters", name.encode("ascii"))
        return default if stored is None else _decode_number(stored)
