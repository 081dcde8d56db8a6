"""Starts of the log that have given out places before these were synced."""

from __future__ import annotations

import msgspec

from penstock.log.store.entry_tables import EntryTables
from penstock.model.ids import BEFORE_ALL, Lsn

STARTS = b"starts"
STARTS_KEPT = 16
"""A marker comes seconds after the answers that it rests on; a start has more to do than to end."""

_decode_starts = msgspec.msgpack.Decoder(list[tuple[int, int]]).decode


class StartTables(EntryTables):
    """Reads and writes what the log keeps of its starts."""

    @property
    def starts(self) -> list[tuple[int, Lsn]]:
        """Each start that is remembered, with the place below which all that it gave is there; the
        newest is the last."""
        stored = self.get("counters", STARTS)
        return [] if stored is None else [(n, Lsn(end)) for n, end in _decode_starts(stored)]

    def given_below(self, start: int) -> Lsn:
        """The place below which all that the start gave is there; before all, if the start is not
        known."""
        return dict(self.starts).get(start, BEFORE_ALL)

    def put_given(self, start: int) -> None:
        """Put down that all that the start has given so far is there, as this transaction has it.

        It must be the transaction of the entries themselves: both are there, or neither is.
        """
        others = [each for each in self.starts if each[0] != start]
        kept = [*others, (start, self.next_lsn)][-STARTS_KEPT:]
        self.txn.put(STARTS, msgspec.msgpack.encode(kept), db=self.tables["counters"])
