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

    def trimmed(self, point: str) -> Lsn:
        """Up to where a stream (`s/NAME`) or a tag is no longer whole."""
        found = self.get("trims", point.encode("utf-8"))
        return BEFORE_ALL if found is None else Lsn(_decode_number(found))

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

    def gaps(self) -> list[tuple[int, int]]:
        """Places that a restored log does not have: each from the first to the last one."""
        found = self.get("counters", GAPS)
        return [] if found is None else _decode_gaps(found)
