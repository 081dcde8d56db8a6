"""The state of the log at one place, written down so that messages before it may be purged.

Every server applies every message, and each rests on those before it. Once some of these are
purged, a server that has not applied them takes over the state that one which has wrote down: all
tables as they were at that place. Payloads are left out where a message still carries them; they
are filled in from the messages that are left.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import lmdb
import msgspec

from penstock.errors import Damaged
from penstock.log.backends.jetstream.codec import decode
from penstock.log.backends.jetstream.replay import Delivered
from penstock.log.store import layout
from penstock.log.store.layout import TABLES, Tables, lsn_key, lsn_of
from penstock.log.store.refilling import REFILLING
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn

_CARRIED = {"rows", "pending", "file", "record"}

_encode = msgspec.msgpack.Encoder().encode
_decode_rows = msgspec.msgpack.Decoder(list[tuple[str, bytes, bytes]]).decode


class Baseline(msgspec.Struct, frozen=True):
    """Names a state that was written down: the last place it holds, of which log, and the chunks it
    is in.

    `carried` is how many entries still need their payload from the stream.
    """

    lsn: Lsn
    log: str
    chunks: int
    carried: int


def chunks(view: StoreView, bytes_max: int) -> Iterator[tuple[bytes, int]]:
    """Every table in parts of about `bytes_max` before they are compressed, and how many entries
    in each are without their payload."""
    rows: list[tuple[str, bytes, bytes]] = []
    size = carried = 0
    for table, key, value, is_carried in _rows(view):
        if rows and size + len(value) > bytes_max:
            yield zlib.compress(_encode(rows), 1), carried
            rows, size, carried = [], 0, 0
        rows.append((table, key, value))
        size += len(key) + len(value) + 32
        carried += is_carried
    yield zlib.compress(_encode(rows), 1), carried


def _rows(view: StoreView) -> Iterator[tuple[str, bytes, bytes, bool]]:
    for name in TABLES:
        with view.txn.cursor(db=view.tables[name]) as cursor:
            for key, value in cursor:
                if name == "entries":
                    head, start = layout.decode_entry_head(lsn_of(key), value)
                    if head.kind in _CARRIED:
                        yield name, bytes(key), bytes(value[:start]), True
                        continue
                yield name, bytes(key), bytes(value), False


def load(txn: lmdb.Transaction, tables: Tables, chunk: bytes) -> None:
    """Put what a chunk holds into an empty store."""
    for table, key, value in _decode_rows(zlib.decompress(chunk)):
        if table in TABLES:
            txn.put(key, value, db=tables[table])


def begin_refill(txn: lmdb.Transaction, tables: Tables, left: int) -> None:
    """Say that the store is not whole, until `Refill` says that it is."""
    if left:
        txn.put(REFILLING, _encode(left), db=tables["counters"])


class Refill:
    """Fills payloads in from the messages that carry them, `left` of them up to place `until`."""

    def __init__(self, left: int, until: Lsn) -> None:
        self.left = left
        self.until = until

    def fill(self, txn: lmdb.Transaction, tables: Tables, message: Delivered) -> None:
        """Put the payload of the entry that the message carries, if the entry is still there."""
        entries = tables["entries"]
        stored = txn.get(lsn_key(message.lsn), db=entries)
        decoded = decode(message.body)
        if stored is None or decoded is None:
            return
        whole = bytes(stored) + decoded[1]
        try:
            head, _ = layout.decode_payload(message.lsn, whole)
        except Damaged:
            return  # not what the entry was made of: it stays without, which is noticed at the end
        if head.kind not in _CARRIED:
            return
        txn.put(lsn_key(message.lsn), whole, db=entries)
        self.left -= 1
        if self.left == 0:
            txn.delete(REFILLING, db=tables["counters"])
