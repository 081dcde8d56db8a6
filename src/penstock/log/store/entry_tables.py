"""Entries of the store, found by place, tag and the sequence of their producer."""

from __future__ import annotations

from collections.abc import Container, Iterator

import msgspec

from penstock.log.contract import Entry, Head
from penstock.log.store import layout
from penstock.log.store.layout import Buffer, PartTag, RecordedState, lsn_key, lsn_of
from penstock.log.store.table_reader import TableReader
from penstock.model.ids import BEFORE_ALL, Lsn

_decode_recorded = msgspec.msgpack.Decoder(RecordedState).decode
_decode_part_tag = msgspec.msgpack.Decoder(PartTag).decode
_decode_number = msgspec.msgpack.Decoder(int).decode
_decode_gaps = msgspec.msgpack.Decoder(list[tuple[int, int]]).decode
GAPS = b"gaps"


class EntryTables(TableReader):
    """Reads the tables of this family."""

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

    def tagged(self, tag: str, start: int = 0) -> Iterator[Lsn]:
        """Every entry with the tag, from `start` on, in order."""
        prefix = layout.tag_key(tag, 0)[:-8]
        with self.txn.cursor(db=self.tables["tags"]) as cursor:
            has_row = cursor.set_range(layout.tag_key(tag, start))
            while has_row and bytes(cursor.key()[:-8]) == prefix:
                yield lsn_of(cursor.key())
                has_row = cursor.next()

    def tail(self, tag: str) -> Lsn | None:
        """The last entry with the tag, trimmed or not."""
        with self.txn.cursor(db=self.tables["tags"]) as cursor:
            has_row = cursor.set_range(layout.tag_key(tag, (1 << 64) - 1))
            if cursor.prev() if has_row else cursor.last():
                key = bytes(cursor.key())
                if key[:-8] == layout.tag_key(tag, 0)[:-8]:
                    return lsn_of(key)
        return self.trimmed(tag) or None

    def trimmed(self, point: str) -> Lsn:
        """The place up to which a stream (`s/NAME`) or a tag is no longer whole."""
        stored = self.get("trims", point.encode("utf-8"))
        return BEFORE_ALL if stored is None else Lsn(_decode_number(stored))

    def last_recorded(self, producer: str) -> int | None:
        stored = self.get("record_producers", producer.encode("utf-8"))
        return None if stored is None else _decode_recorded(stored).last

    def recorded(self, producer: str, seq: int) -> Lsn | None:
        stored = self.get("record_seqs", layout.recorded_key(producer, seq))
        return None if stored is None else Lsn(_decode_number(stored))

    def aux(self, lsn: Lsn) -> bytes | None:
        """The auxiliary data last set on an entry."""
        stored = self.get("aux", lsn_key(lsn))
        return None if stored is None else bytes(stored)

    def stored(self, lsn: Lsn) -> Buffer | None:
        stored: Buffer | None = self.get("entries", lsn_key(lsn))
        return stored

    def head(self, lsn: Lsn) -> Head | None:
        stored = self.stored(lsn)
        return None if stored is None else layout.decode_entry_head(lsn, stored)[0]

    def entry(self, lsn: Lsn) -> Entry | None:
        stored = self.stored(lsn)
        if stored is None:
            return None
        head, payload = layout.decode_payload(lsn, stored)
        return Entry(head, bytes(payload))

    def payload(self, lsn: Lsn) -> Buffer:
        """The verified payload of an entry an index names; absent is damage."""
        return self.head_and_payload(lsn)[1]

    def head_and_payload(self, lsn: Lsn) -> tuple[Head, Buffer]:
        """Read what `payload` reads, with the entry's head."""
        stored = self.stored(lsn)
        if stored is None:
            raise layout.damaged(lsn, "an index names it and it is not there")
        return layout.decode_payload(lsn, stored)

    def gaps(self) -> list[tuple[int, int]]:
        """Places that a restored log does not have: each from the first to the last one."""
        stored = self.get("counters", GAPS)
        return [] if stored is None else _decode_gaps(stored)
