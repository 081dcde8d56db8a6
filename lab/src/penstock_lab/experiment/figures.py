"""Figures of a result: what one is, and how those are made that several suites have. Pure.

A run that does not count enters none of them, except the counts of such runs.
"""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from penstock_lab.experiment.losses import beside
from penstock_lab.experiment.record import Measured, Run
from penstock_lab.percentiles import median, percentile
from penstock_lab.workloads.sending import LAG_MS_P99_MAX

T = TypeVar("T")
C = TypeVar("C")
M = TypeVar("M", bound=Measured[Any])
Value: TypeAlias = Callable[[M], float | None]
HEADLINE = "headline."
SHARE = "of 1"
"""The unit of a figure between 0 and 1."""


class Goal(msgspec.Struct, frozen=True):
    """A bound that a figure is held against."""

    sign: Literal["at most", "under", "over", "at least"]
    bound: float

    def is_met(self, value: float) -> bool:
        compare = {
            "at most": operator.le,
            "under": operator.lt,
            "over": operator.gt,
            "at least": operator.ge,
        }
        return bool(compare[self.sign](value, self.bound))

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:g}"


class Figure(msgspec.Struct, frozen=True):
    """A number of the result, and what each repeat alone gives, to show their spread."""

    name: str
    unit: str
    meaning: str
    value: float
    repeats: tuple[float, ...] = ()
    goal: Goal | None = None

    @property
    def spread(self) -> str:
        if len(self.repeats) < 2:
            return ""
        low, high = (
            f"{bound:,.{self.places}f}" for bound in (min(self.repeats), max(self.repeats))
        )
        return f"{low} to {high}"

    @property
    def places(self) -> int:
        """The number of digits that say something: a ratio lives near 1, a share may be small."""
        return {"x": 2, SHARE: 3}.get(self.unit, 1)

    @property
    def is_summary(self) -> bool:
        """Whether the figure is shown in the table that sums a suite up."""
        return self.goal is not None or self.name.startswith(HEADLINE)


def middle(
    name: str, unit: str, meaning: str, repeats: Iterable[float], goal: Goal | None = None
) -> list[Figure]:
    """The median of the repeats as a figure; none of none."""
    values = tuple(repeats)
    value = median(values)
    return [] if value is None else [Figure(name, unit, meaning, value, values, goal)]


def medians(
    name: str, records: Sequence[M], wanted: Iterable[tuple[str, str, str, Value[M]]]
) -> list[Figure]:
    """For each key, unit, sentence and value the median over the records that count."""
    counted = [record for record in records if record.is_counted]
    figures: list[Figure] = []
    for key, unit, meaning, value in wanted:
        repeats = [number for record in counted if (number := value(record)) is not None]
        figures += middle(f"{name}.{key}", unit, meaning, repeats)
    return figures


def latency_p50(record: Measured[Any]) -> float | None:
    return None if record.run.latency is None else record.run.latency.p50


def latency_p99(record: Measured[Any]) -> float | None:
    return None if record.run.latency is None else record.run.latency.p99


class Ratio(NamedTuple, Generic[C]):
    """One system's number over another's at a cell: the median of the repeats."""

    cell: C
    value: float
    repeats: tuple[float, ...]


def ratios(
    records: Sequence[M], above: Sequence[str], below: str, value: Value[M]
) -> list[Ratio[Any]]:
    """At every cell, the worst of `above` over `below`, of each repeat in which both count.

    A ratio is taken within a repeat, where both systems met the same machine, and of those the
    median is shown.
    """
    ratios_of_cells = []
    for cell in ordered(record.cell for record in records):
        here = [record for record in records if record.cell == cell and record.is_counted]
        repeats = []
        for repeat in ordered(record.repeat for record in here):
            numbers = {
                record.system: number
                for record in here
                if record.repeat == repeat and (number := value(record))
            }
            theirs = [numbers[name] for name in above if name in numbers]
            if theirs and below in numbers:
                repeats.append(max(theirs) / numbers[below])
        middle_value = median(repeats)
        if middle_value is not None:
            ratios_of_cells.append(Ratio(cell, middle_value, tuple(repeats)))
    return ratios_of_cells


def ratio_over_pairs(
    name: str, records: Sequence[M], above: str, below: str, value: Value[M]
) -> list[Figure]:
    """The figure of one system's p99 over another's: the middle of what every pair of runs gives.

    With three repeats that is the middle of nine, not of three, and one disturbed run still does
    not move it far. Beside it, for the spread, the ratio within each repeat.
    """
    theirs, ours = (
        {
            record.repeat: number
            for record in records
            if record.system == system and record.is_counted and (number := value(record))
        }
        for system in (above, below)
    )
    if not theirs or not ours:
        return []
    pairs = [math.log(high / low) for high in theirs.values() for low in ours.values()]
    repeats = tuple(theirs[repeat] / ours[repeat] for repeat in theirs if repeat in ours)
    sentence = f"p99 of {above} over that of {below}; above 1 is ahead; {beside(above, below)}"
    # Of an even number the middle two count alike, whichever system is above the line.
    return [Figure(name, "x", sentence, math.exp(statistics.median(pairs)), repeats)]


def sender_lag(runs: Iterable[Run]) -> list[Figure]:
    """The sender's lag, over every send of every run, those that do not count included."""
    lags = [lag for run in runs for lag in run.lag_ms]
    if not lags:
        return []
    goal, p99 = Goal("at most", LAG_MS_P99_MAX), percentile(lags, 99) or 0.0
    return [Figure("generator_lag_ms_p99", "ms", "how late the sender was", p99, (), goal)]


def verdict_counts(runs: Sequence[Run], judged: Sequence[Run] | None = None) -> list[Figure]:
    """Counts of runs that do not count, by their names. Wrong answers are counted over all `runs`,
    the rest over those `judged`, which are all unless given."""
    counts = []
    for name, meaning, kind in (
        ("answers_wrong", "runs with a wrong answer", "wrong"),
        ("runs_failed", "runs that failed", "failed"),
        ("runs_stalled", "runs that stalled", "stalled"),
        ("runs_void", "runs with a late sender", "void: late generator"),
    ):
        among = runs if kind == "wrong" or judged is None else judged
        bad = sum(run.verdict.kind == kind for run in among)
        goal = None if kind.startswith("void") else Goal("at most", 0)
        counts.append(Figure(f"{HEADLINE}{name}", "", meaning, float(bad), (), goal))
    return counts


def ordered(values: Iterable[T]) -> list[T]:
    """Each once, in the order they first come."""
    return list(dict.fromkeys(values))
