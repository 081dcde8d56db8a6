"""Least event time of the rows in a store, and the scans that it saves.

Spark evicts by reading all rows of a store in every batch and removing those whose event time is
at or below the watermark. A store that knows a time below which it has no row answers such a scan
with no rows at all. The bound may be too low, which costs a scan; it is never too high, which would
keep rows that Spark removes.

Events come in the order of the store's own calls:

1. `opened` when the store is read from its checkpoint: nothing is known, unless it has no rows;
2. `put` for every row written, `forgotten` for every change that has no time to it (a merge) and
   when a task is aborted, for its writes stay until the store is opened again;
3. `begun` for a scan, which says whether it may be skipped; then `read` for every row that it
   reads, `removed` for every row removed meanwhile, and `ended` if it came to its end. A scan that
   is cut off teaches nothing.
"""

from __future__ import annotations

from typing import NamedTuple

NO_ROW_US = 2**63 - 1
"""Least time of a store without rows; no watermark reaches it."""


class Scan(NamedTuple):
    """A scan under way: rows at or below `until_us` are expired and removed by whoever scans."""

    until_us: int
    kept_us: int = NO_ROW_US
    """Least time of the rows that stay."""
    expired: int = 0
    removed: int = 0


class LeastTime(NamedTuple):
    """Lower bound of the event times in a store, in microseconds; None: nothing is known."""

    bound_us: int | None = None
    scan: Scan | None = None

    def opened(self, *, is_empty: bool) -> LeastTime:
        return LeastTime(NO_ROW_US if is_empty else None)

    def forgotten(self) -> LeastTime:
        return LeastTime()

    def put(self, time_us: int | None) -> LeastTime:
        """A row without a time is never expired: SQL compares null with nothing."""
        if time_us is None:
            return self
        bound_us = None if self.bound_us is None else min(self.bound_us, time_us)
        scan = self.scan and self.scan._replace(kept_us=min(self.scan.kept_us, time_us))
        return LeastTime(bound_us, scan)

    def may_skip(self, until_us: int) -> bool:
        """Whether no row of the store has a time at or below `until_us`."""
        return self.bound_us is not None and self.bound_us > until_us

    def begun(self, until_us: int) -> LeastTime:
        """A scan begins that removes rows up to `until_us`; it takes the place of one cut off."""
        return self._replace(scan=Scan(until_us))

    def read(self, time_us: int | None) -> LeastTime:
        """The scan has come to a row of the store."""
        if self.scan is None or time_us is None:
            return self
        if time_us <= self.scan.until_us:
            return self._replace(scan=self.scan._replace(expired=self.scan.expired + 1))
        return self._replace(scan=self.scan._replace(kept_us=min(self.scan.kept_us, time_us)))

    def removed(self) -> LeastTime:
        if self.scan is None:
            return self
        return self._replace(scan=self.scan._replace(removed=self.scan.removed + 1))

    def ended(self) -> LeastTime:
        """The scan has read all rows: what it has not removed is known.

        Where fewer rows were removed than were expired, whoever scanned did not do what a scan is
        for, and the bound stays as it was.
        """
        scan = self.scan
        if scan is None:
            return self
        return LeastTime(scan.kept_us if scan.removed >= scan.expired else self.bound_us)

    def measured(self, least_us: int) -> LeastTime:
        """Rows were read for their times alone; the least of them is exact."""
        return LeastTime(least_us)
