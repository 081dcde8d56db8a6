"""The search for the highest rate that holds: told how a rate went, it says which to try next.

It doubles until a rate does not hold, then halves the interval between the highest that held, or 0
while none has, and the lowest that did not. A rate holds if the run counts and latency after
warm-up does not rise: a system that falls behind by a part of what comes in rises by that part of a
second in each second. The few long batches of a fixed trigger make such a slope noise, so a query
that had nothing to do for a tenth of the time holds its rate whatever the slope.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.record import Measured, Run
from penstock_lab.experiment.turns import Step

M = TypeVar("M", bound=Measured[Any])
SLOPE_MS_PER_S_MAX = 50.0
"""A rise of 50 ms per second: 5 % of the input is not kept up with. Noise rises less."""
BUSY_SHARE_MIN = 0.9
"""A query that falls behind has a batch under way all the time, or nearly."""
PRECISION = 1.15
"""The search ends when the rate that failed is this many times the rate that held, or less."""


class Bounds(Protocol):
    """The rates at which a search begins and ends."""

    @property
    def rate_first(self) -> int: ...
    @property
    def rate_max(self) -> int: ...
    @property
    def tries_max(self) -> int: ...


class Tried(msgspec.Struct, frozen=True):
    """One rate and how it went."""

    rate: int
    is_sustained: bool
    how: str = ""


class Searched(msgspec.Struct, frozen=True):
    """The rates that were tried for one system at one cell."""

    cell: Any
    system: str
    tried: tuple[Tried, ...]

    @property
    def held(self) -> int:
        return max(
            (tried_rate.rate for tried_rate in self.tried if tried_rate.is_sustained), default=0
        )

    @property
    def failed(self) -> int:
        """The lowest rate that did not hold; 0 if all did."""
        return min(
            (tried_rate.rate for tried_rate in self.tried if not tried_rate.is_sustained), default=0
        )


def is_sustained(run: Run, slope_max: float = SLOPE_MS_PER_S_MAX) -> bool:
    """A run that does not count does not hold its rate: nor if it was the sender that was late.

    Where queries had time to spare, all was worked off in time: a slope of their few batches says
    nothing then, and a run of one or two batches has none.
    """
    slope = run.slope_ms_per_s
    has_spare_time = run.busy_share is not None and run.busy_share < BUSY_SHARE_MIN
    return run.is_counted and (has_spare_time or (slope is not None and slope <= slope_max))


def how(run: Run) -> str:
    """In a few words, how a rate went."""
    if is_sustained(run):
        return "held"
    if run.verdict.reasons:
        return str(run.verdict)
    return "too few results to tell" if run.slope_ms_per_s is None else "latency rises"


def next_rate(tried: Sequence[Tried], first: int, rate_max: int, tries_max: int) -> int | None:
    """The rate to try now; None when there is nothing more to learn."""
    held = max((tried_rate.rate for tried_rate in tried if tried_rate.is_sustained), default=0)
    failed = min(
        (tried_rate.rate for tried_rate in tried if not tried_rate.is_sustained), default=None
    )
    if not tried:
        return min(first, rate_max)
    if len(tried) >= tries_max or held >= rate_max:
        return None
    if failed is None:
        return min(2 * held, rate_max)
    if failed <= held * PRECISION:
        return None
    return (held + failed) // 2 or None


def _next(bounds: Bounds, tried: Sequence[Tried]) -> int | None:
    return next_rate(tried, bounds.rate_first, bounds.rate_max, bounds.tries_max)


def tried_of(runs: Iterable[Run]) -> tuple[Tried, ...]:
    return tuple(Tried(run.rate, is_sustained(run), how(run)) for run in runs)


def searching(
    bounds: Bounds, step_at: Callable[[int, int], Step[M]]
) -> Generator[Step[M], M, tuple[Tried, ...]]:
    """The steps of one search; `step_at` makes one of a rate and how many came before it. Returns
    how every rate went."""
    runs: list[Run] = []
    while (rate := _next(bounds, tried_of(runs))) is not None:
        record = yield step_at(rate, len(runs))
        runs.append(record.run)
    return tried_of(runs)


def ended_search(bounds: Bounds, runs: Sequence[Run], cell: Any, system: str) -> Searched | None:
    """The end of a search; None if it was cut short, when a higher rate may hold."""
    tried = tried_of(runs)
    return Searched(cell, system, tried) if tried and _next(bounds, tried) is None else None


def highest_rate(name: str, searched: Searched) -> Figure:
    """The highest rate that held, with how every rate went."""
    rates = ", ".join(f"{tried.rate:,} {tried.how}" for tried in searched.tried)
    sentence = f"highest rate that held: {rates}"
    return Figure(name, "events/s", sentence, float(searched.held))
