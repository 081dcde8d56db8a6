"""Arrivals of a query's data: how much comes in a second, and whether its backlog grows."""

from __future__ import annotations

from typing import Literal

from penstock.admission.offer import Offer

MEMORY_MS = 5_000.0
"""An arrival this long ago counts for a third of one now."""
STEP_MS_MIN = 20.0

Unit = Literal["rows", "bytes"]


class Flow:
    """Data in one unit: what waits, None where the sources cannot tell, what arrives, and by how
    much the backlog grows from one cut to the next. Between two cuts it grows anyway."""

    def __init__(self, waiting: int | None) -> None:
        self.waiting = waiting
        self.per_ms = 0.0
        self.growth_per_ms = 0.0
        self._arrived = _Mean()
        self._grown = _Mean()
        self._taken = 0

    def waits(self, count: int | None, now_ms: float) -> None:
        """The amount of data that wait now; None, if it cannot be told, forgets what was known."""
        self.waiting = count
        if count is None:
            self.per_ms = self.growth_per_ms = 0.0
            self._arrived, self._grown = _Mean(), _Mean()
            return
        if not count:
            self.growth_per_ms, self._grown = 0.0, _Mean()
        if self._arrived.at_ms is None or now_ms - self._arrived.at_ms >= STEP_MS_MIN:
            arrived = max(count - self._arrived.count + self._taken, 0)
            self.per_ms = self._arrived.next(self.per_ms, count, arrived, now_ms)
            self._taken = 0

    def taken(self, count: int | None) -> None:
        """A batch has taken so much."""
        self._taken += count or 0

    def cut(self, now_ms: float) -> None:
        """A batch begins, out of what was said to wait."""
        if self.waiting is not None:
            grown = self.waiting - self._grown.count
            self.growth_per_ms = self._grown.next(self.growth_per_ms, self.waiting, grown, now_ms)


class _Mean:
    """The mean change of a count in a millisecond, in which later changes count more."""

    def __init__(self) -> None:
        self.at_ms: float | None = None
        self.count = 0
        self._known_ms = 0.0

    def next(self, mean: float, count: int, change: int, now_ms: float) -> float:
        """The mean after another count, and the change to it; the first count has none."""
        passed_ms = 0.0 if self.at_ms is None else now_ms - self.at_ms
        self.at_ms, self.count = now_ms, count
        if passed_ms <= 0.0:
            return mean
        self._known_ms += passed_ms
        share = passed_ms / min(self._known_ms, MEMORY_MS + passed_ms)
        return mean + share * (change / passed_ms - mean)


class Arrivals:
    """Data that arrive for a query, in every unit that its sources tell: the difference between two
    backlogs, and the batches that were taken between them."""

    def __init__(self) -> None:
        self.rows = Flow(0)
        self.bytes = Flow(None)
        self.files = Flow(None)

    @property
    def unit(self) -> Unit:
        """The unit that sizes are reckoned in: rows, or bytes where only these are told."""
        return "bytes" if self.rows.waiting is None and self.bytes.waiting is not None else "rows"

    @property
    def flow(self) -> Flow:
        """The flow in that unit."""
        return self.bytes if self.unit == "bytes" else self.rows

    def offered(self, offer: Offer, now_ms: float) -> None:
        """An offer at this moment; one of nothing does not say what its sources can tell."""
        counts = ((self.rows, offer.rows), (self.bytes, offer.bytes), (self.files, offer.files))
        for flow, count in counts:
            if offer.has_data or flow.waiting is not None:
                flow.waits(count, now_ms)

    def cut(self, rows: int | None, size_bytes: int | None, now_ms: float) -> None:
        """A batch begins that takes so much. Of a folder, whose files are taken whole, this is what
        was asked for: rates of bytes are off by that, growth is not."""
        for flow in (self.rows, self.bytes, self.files):
            flow.cut(now_ms)
        self.rows.taken(rows)
        self.bytes.taken(size_bytes)
