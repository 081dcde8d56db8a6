"""Schedules, when rows are due: open-loop, fixed before the first row is sent.

Time is cut into ticks, counted from the start of the run. Tick `k` carries the rows
`rows_before(k)` to `rows_before(k + 1) - 1` and is due at `k * tick_us`, whatever became of the
ticks before it. Every schedule is a function of the tick's number, so a sender, a second sender and
the one who measures latency agree without talking.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import pyarrow as pa

from penstock_lab.workloads.seeded import STAMP, Draw, Ints, require

SECOND_US = 1_000_000
_PERIODS_AT_ONCE = 1_024


@dataclass(frozen=True, kw_only=True)
class Schedule(ABC):
    """A schedule: which rows are due when; see the subclasses for how many."""

    tick_us: int = 20_000
    """Time between two sends, in microseconds."""

    def __post_init__(self) -> None:
        require(self.tick_us >= 1, f"{self} never ticks; give a tick of 1 us or more")

    @abstractmethod
    def rows_by(self, time_us: int) -> int:
        """Rows due in the first `time_us` of the run; never falls as time grows."""

    def rows_before(self, tick: int) -> int:
        """Rows due in all ticks before this one: the number of the tick's first row."""
        return self.rows_by(tick * self.tick_us)

    def rows_in(self, tick: int) -> int:
        """Rows due in this tick."""
        return self.rows_before(tick + 1) - self.rows_before(tick)

    def due_us(self, tick: int) -> int:
        """The time a tick is due, in microseconds from the start of the run."""
        return tick * self.tick_us

    def tick_of(self, row: int) -> int:
        """The tick that carries a row."""
        require(row >= 0, f"row {row} is never due; rows are numbered from 0")
        ticks = 1
        while self.rows_before(ticks) <= row:
            ticks *= 2
        return bisect_right(range(ticks), row, key=self.rows_before) - 1

    def intended_send_us(self, row: int) -> int:
        """The time a row should be sent, in microseconds from the start of the run.

        Latency counts from here, not from when the row was in fact sent.
        """
        return self.due_us(self.tick_of(row))

    def intended_sends_us(self, rows: Ints) -> Ints:
        """`intended_send_us` of many rows, given in rising order."""
        if not rows.size:
            return np.empty(0, np.int64)
        low, high = self.tick_of(int(rows[0])), self.tick_of(int(rows[-1]))
        if high - low > rows.size:
            # Fewer rows than ticks: searching for each is less work than listing the ticks.
            return np.array([self.intended_send_us(row) for row in rows.tolist()], np.int64)
        begins = np.array([self.rows_before(tick) for tick in range(low, high + 1)], np.int64)
        ticks: Ints = np.searchsorted(begins, rows, side="right") - 1 + low
        return ticks * self.tick_us


@dataclass(frozen=True, kw_only=True)
class Constant(Schedule):
    """The same rate for ever."""

    rate: int = 1_000
    """Rows per second."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.rate >= 1, f"{self} sends nothing; give a rate of 1 row per second or more")

    def rows_by(self, time_us: int) -> int:
        return time_us * self.rate // SECOND_US


@dataclass(frozen=True, kw_only=True)
class RandomNormal(Schedule):
    """A new rate every period, normally distributed about the mean; within a period it is even.

    Draws below zero count as zero, so the mean of what is sent exceeds `rate` by 0.4 % at a
    deviation of half the mean, by less below that, and by 8 % at a deviation equal to it.
    """

    rate: int = 1_000
    """Mean, in rows per second."""
    deviation: int = 200
    """Standard deviation of the rate, in rows per second."""
    period_us: int = SECOND_US
    """How long one drawn rate lasts, in microseconds."""
    seed: int = 7

    _normal: ClassVar[NormalDist] = NormalDist()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.rate >= 1 and self.deviation >= 0 and self.period_us >= self.tick_us,
            f"{self} cannot be sent; give a rate of 1 or more, a deviation of 0 or more, and a "
            "period no shorter than a tick",
        )

    def rows_by(self, time_us: int) -> int:
        period, within_us = divmod(time_us, self.period_us)
        # The table grows by doubling and each size is kept, so a long run computes it rarely.
        size = _PERIODS_AT_ONCE
        while size <= period + 1:
            size *= 2
        ends = _period_ends(self, size)
        begin, end = int(ends[period]), int(ends[period + 1])
        return begin + (end - begin) * within_us // self.period_us

    def drawn(self, periods: int) -> Ints:
        """Rows of the first periods of the run."""
        return np.diff(_period_ends(self, periods))

    def _running_rows(self, periods: int) -> Ints:
        units = Draw(self.seed, "traffic.normal").unit(np.arange(periods, dtype=np.int64))
        # The inverse is not defined at 0, and a draw may be 0.
        deviates = [self._normal.inv_cdf(max(unit, 2.0**-54)) for unit in units.tolist()]
        rates = np.maximum(self.rate + self.deviation * np.array(deviates), 0.0)
        # The sum is rounded, not each draw: a period of less than half a row would never send one.
        rows: Ints = np.rint(np.cumsum(rates) * (self.period_us / SECOND_US)).astype(np.int64)
        return rows


@lru_cache(maxsize=64)
def _period_ends(schedule: RandomNormal, periods: int) -> Ints:
    ends: Ints = np.concatenate([np.zeros(1, np.int64), schedule._running_rows(periods)])
    return ends


@dataclass(frozen=True, kw_only=True)
class Burst(Schedule):
    """A base rate with a burst at the end of every cycle, so that a run begins calmly."""

    rate: int = 1_000
    """Rows per second outside bursts."""
    factor: float = 10.0
    """Rate in a burst over the base rate."""
    every_us: int = 30 * SECOND_US
    """Length of a cycle, in microseconds: from the start of a burst to the start of the next."""
    length_us: int = SECOND_US
    """Length of a burst, in microseconds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.rate >= 1 and self.factor >= 0 and 0 <= self.length_us < self.every_us,
            f"{self} cannot be sent; give a rate of 1 or more, a factor of 0 or more, and a burst "
            "shorter than its cycle",
        )

    @property
    def burst_rate(self) -> int:
        """Rows per second in a burst."""
        return round(self.rate * self.factor)

    def rows_by(self, time_us: int) -> int:
        cycles, within_us = divmod(time_us, self.every_us)
        calm_us = self.every_us - self.length_us
        row_us = cycles * (calm_us * self.rate + self.length_us * self.burst_rate)
        row_us += min(within_us, calm_us) * self.rate
        row_us += max(within_us - calm_us, 0) * self.burst_rate
        return row_us // SECOND_US


def stamped(rows: pa.RecordBatch, sent_at_us: int | Ints) -> pa.RecordBatch:
    """The rows with their intended send time as a last column, `sent_at`.

    Microseconds since the epoch, one for all or one each: the start of the run plus
    `intended_send_us`. Generators leave the column out, because only a run knows when it starts.
    """
    sent_at = np.broadcast_to(np.asarray(sent_at_us, np.int64), (rows.num_rows,))
    return rows.append_column(pa.field("sent_at", STAMP), pa.array(sent_at).cast(STAMP))
