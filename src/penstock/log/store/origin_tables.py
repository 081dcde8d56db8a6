"""Origins of the store: of commits older than their arrival, the oldest between two positions.

Such commits of a stream form a list from the newest back. Each has a link that jumps back to an
earlier one, and the oldest origin of what it jumps over. A jump is one step, or over two earlier
jumps where these are equally long, so any range is passed in a logarithm of steps.
"""

from __future__ import annotations

import msgspec

from penstock.log.state import StreamRecord
from penstock.log.store import layout
from penstock.log.store.layout import lsn_of
from penstock.log.store.table_reader import TableReader
from penstock.model.ids import Lsn


class OriginLink(msgspec.Struct, frozen=True, array_like=True):
    """One commit's origin and its link: `oldest_at_ms` is the oldest origin of all such commits
    after `jump`, this one included. `count` numbers them from 1, and `jump_count` is the number of
    the one at `jump`, 0 if that is before them all."""

    origin_at_ms: int
    count: int
    jump: Lsn
    jump_count: int
    oldest_at_ms: int

    @property
    def jump_length(self) -> int:
        return self.count - self.jump_count


_decode_link = msgspec.msgpack.Decoder(OriginLink).decode


class OriginTables(TableReader):
    """Reads the table of this family."""

    def oldest_origin(self, stream: StreamRecord, after: int, until: int) -> int | None:
        """The oldest origin among commits in `(after, until]` that are older than their arrival;
        None: there are none."""
        oldest: int | None = None
        place = self._linked_at(stream.id, until)
        while place is not None and place[0] > after:
            lsn, link = place
            if link.jump >= after:
                seen_ms, following = link.oldest_at_ms, int(link.jump)
            else:
                seen_ms, following = link.origin_at_ms, lsn - 1
            oldest = seen_ms if oldest is None else min(oldest, seen_ms)
            place = self._linked_at(stream.id, following) if following > after else None
        return oldest

    def origin_link(self, stream_id: int, origin_at_ms: int) -> OriginLink:
        """The link of a commit that follows all that are there."""
        last = self._linked_at(stream_id, (1 << 64) - 1)
        if last is None:
            return OriginLink(origin_at_ms, 1, Lsn(0), 0, origin_at_ms)
        lsn, link = last
        stored = self.get("origins", layout.commit_key(stream_id, link.jump))
        jumped = None if stored is None else _decode_link(stored)
        if jumped is None or jumped.jump_length != link.jump_length:
            return OriginLink(origin_at_ms, link.count + 1, lsn, link.count, origin_at_ms)
        oldest_at_ms = min(origin_at_ms, link.oldest_at_ms, jumped.oldest_at_ms)
        return OriginLink(
            origin_at_ms, link.count + 1, jumped.jump, jumped.jump_count, oldest_at_ms
        )

    def _linked_at(self, stream_id: int, lsn: int) -> tuple[Lsn, OriginLink] | None:
        """The last commit with a link at or before `lsn`."""
        with self.txn.cursor(db=self.tables["origins"]) as cursor:
            key = layout.commit_key(stream_id, lsn)
            has_later = cursor.set_range(key)
            if not (has_later and bytes(cursor.key()) == key) and not (
                cursor.prev() if has_later else cursor.last()
            ):
                return None
            if bytes(cursor.key()[:4]) != layout.stream_prefix(stream_id):
                return None
            return lsn_of(cursor.key()), _decode_link(cursor.value())
