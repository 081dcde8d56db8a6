"""Arrivals of rows: when producers append, and how many rows each time. Drawn from a seed."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias, get_args

Shape: TypeAlias = Literal["constant", "random", "bursts", "backlog"]
SHAPES: tuple[Shape, ...] = get_args(Shape)

BURST_FACTOR = 10.0
BURST_S = 5.0
BACKLOG_S = 20.0


@dataclass(frozen=True)
class Traffic:
    """Rows per second and their shape.

    `constant`: the same in every append. `random`: every second draws its own rate between 0 and
    twice the mean. `bursts`: ten times the rate for five seconds in the middle of the run, random
    otherwise. `backlog`: the rows of twenty seconds wait for the first batch, then constant.
    """

    rate: float
    shape: Shape = "random"
    append_ms: float = 50.0
    """The time between two appends, each of which is visible, and cut, as a whole."""


@dataclass(frozen=True)
class Recorded:
    """Appends that were measured, instead of drawn ones."""

    at_ms: tuple[float, ...]
    rows: tuple[int, ...]

    @property
    def rate(self) -> float:
        """Rows per second, on average."""
        lasted_ms = self.at_ms[-1] - self.at_ms[0] if len(self.at_ms) > 1 else 0.0
        return sum(self.rows) / max(lasted_ms, 1.0) * 1000


class Arrivals:
    """The appends to one query's input, and how far its batches have read."""

    def __init__(self, at_ms: list[float], rows: list[int]) -> None:
        self.at_ms = at_ms
        self.rows = rows
        self._rows_before = [0, *accumulate(rows)]
        self.read = 0
        """Appends that some batch has taken."""

    def __len__(self) -> int:
        return len(self.at_ms)

    def arrived(self, now_ms: float) -> int:
        """Appends that have come up to now."""
        return bisect_right(self.at_ms, now_ms, self.read)

    def waiting_rows(self, now_ms: float) -> int:
        return self._rows_before[self.arrived(now_ms)] - self._rows_before[self.read]

    def oldest_at_ms(self, now_ms: float) -> float | None:
        """The arrival of the oldest append that waits; None if none does."""
        if self.arrived(now_ms) == self.read:
            return None
        return self.at_ms[self.read]

    def next_at_ms(self, now_ms: float) -> float | None:
        """The arrival of the next append after now; None after the last."""
        place = self.arrived(now_ms)
        return self.at_ms[place] if place < len(self.at_ms) else None

    def take(self, rows_max: float | None, now_ms: float) -> tuple[int, int]:
        """Take whole appends of at most `rows_max` rows, but one at least: from and until where."""
        first, end = self.read, self.arrived(now_ms)
        if rows_max is not None:
            limit = self._rows_before[first] + rows_max
            end = min(end, bisect_right(self._rows_before, limit) - 1)
        self.read = max(end, first + 1)
        return first, self.read

    def rows_between(self, first: int, end: int) -> int:
        return self._rows_before[end] - self._rows_before[first]


def draw_arrivals(traffic: Traffic | Recorded, seconds: float, luck: random.Random) -> Arrivals:
    """The appends of `seconds` seconds; queries are shifted against each other by luck."""
    if isinstance(traffic, Recorded):
        return Arrivals(list(traffic.at_ms), list(traffic.rows))
    step = traffic.append_ms
    shift = luck.random() * step
    at_ms = [shift + step * number for number in range(max(1, int(seconds * 1000 / step)))]
    rates = _rates(traffic, seconds, luck)
    carried = luck.random()
    rows = []
    for moment in at_ms:
        carried += rates[min(int(moment / 1000), len(rates) - 1)] * step / 1000
        rows.append(int(carried))
        carried -= int(carried)
    if traffic.shape == "backlog":
        before = round(BACKLOG_S * 1000 / step)
        at_ms = [0.0] * before + at_ms
        rows = [max(1, round(traffic.rate * step / 1000))] * before + rows
    kept = [(moment, count) for moment, count in zip(at_ms, rows, strict=True) if count]
    return Arrivals([moment for moment, _ in kept], [count for _, count in kept])


def _rates(traffic: Traffic, seconds: float, luck: random.Random) -> list[float]:
    """The rate of every second."""
    count = max(1, int(seconds + 0.999))
    if traffic.shape in ("constant", "backlog"):
        return [traffic.rate] * count
    rates = [traffic.rate * 2 * luck.random() for _ in range(count)]
    if traffic.shape == "bursts":
        first = int(seconds / 2 - BURST_S / 2)
        for second in range(max(first, 0), min(first + int(BURST_S), count)):
            rates[second] = traffic.rate * BURST_FACTOR
    return rates
