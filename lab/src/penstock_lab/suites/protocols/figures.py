"""The figures of the suite from its runs. Pure; a run that does not count enters none of them.

A ratio is taken within a repeat, where both protocols had the same phases and met the same machine,
and of those the median is shown. Theirs over ours, so that above 1 is ahead; and what the marker
costs over no protocol at all, which is above 1 by nature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from penstock_lab.experiment.report import Figure, Goal
from penstock_lab.percentiles import median, percentile
from penstock_lab.suites.protocols.plan import Cell, Plan
from penstock_lab.suites.protocols.record import Measured
from penstock_lab.workloads.sending import LAG_MS_P99_MAX

T = TypeVar("T")
LEVEL = "log"
SHORTEST_MS = 10
P50_GOAL, P99_GOAL, P50_MIN_GOAL, UNSAFE_GOAL = 1.4, 3.1, 1.0, 2.0


class Ratio(NamedTuple):
    """One protocol's latency over another's at a cell: the median of the repeats."""

    cell: Cell
    value: float
    repeats: tuple[float, ...]


def figures(plan: Plan, runs: Sequence[Measured]) -> list[Figure]:
    """Per cell and protocol its latencies; then the sender; then the headline."""
    found: list[Figure] = []
    for cell in ordered(one.cell for one in runs):
        for protocol in plan.protocols:
            counted = [
                one
                for one in runs
                if (one.cell, one.protocol) == (cell, protocol) and one.is_counted
            ]
            found += _latencies(f"{LEVEL}.{cell.name}.{protocol}", counted)
    found += _lag(runs)
    return [*found, *_headline(runs)]


def p50(one: Measured) -> float | None:
    return None if one.run.latency is None else one.run.latency.p50


def p99(one: Measured) -> float | None:
    return None if one.run.latency is None else one.run.latency.p99


def commits(one: Measured) -> float | None:
    return one.commits_per_s


def _latencies(name: str, counted: Sequence[Measured]) -> list[Figure]:
    found = []
    for key, unit, what, value in (
        ("p50_ms", "ms", "event-time latency of visible results, median", p50),
        ("p99_ms", "ms", "event-time latency of visible results, 99 of 100", p99),
        ("commits_per_s", "", "of the task that committed least often", commits),
    ):
        repeats = tuple(number for one in counted if (number := value(one)) is not None)
        middle = median(repeats)
        if middle is not None:
            found.append(Figure(f"{name}.{key}", unit, what, middle, repeats))
    return found


def ratios(
    runs: Sequence[Measured],
    above: str,
    below: str,
    value: Callable[[Measured], float | None],
) -> list[Ratio]:
    """`above` over `below` at every cell at which both count in one repeat at least."""
    found = []
    for cell in ordered(one.cell for one in runs):
        by_run = {
            (one.protocol, one.repeat): number
            for one in runs
            if one.cell == cell and one.is_counted and (number := value(one))
        }
        repeats = tuple(
            by_run[above, repeat] / by_run[below, repeat]
            for repeat in sorted({repeat for _, repeat in by_run})
            if (above, repeat) in by_run and (below, repeat) in by_run
        )
        middle = median(repeats)
        if middle is not None:
            found.append(Ratio(cell, middle, repeats))
    return found


def _headline(runs: Sequence[Measured]) -> list[Figure]:
    found: list[Figure] = []
    middles = ratios(runs, "transaction", "marker", p50)
    tails = ratios(runs, "transaction", "marker", p99)
    shortest = [one for one in middles if one.cell.interval_ms == SHORTEST_MS]
    shortest_tails = [one for one in tails if one.cell.interval_ms == SHORTEST_MS]
    aligned = ratios(runs, "aligned", "marker", p50)
    unsafe = ratios(runs, "marker", "unsafe", p50)
    for name, what, among, choose, goal in (
        ("marker_vs_transaction_p50_10ms", "p50, transaction over marker, least",
         shortest, min, Goal("at least", P50_GOAL)),
        ("marker_vs_transaction_p99_10ms", "p99, transaction over marker, least",
         shortest_tails, min, Goal("at least", P99_GOAL)),
        ("marker_vs_transaction_p50_min", "p50, transaction over marker, least of all",
         middles, min, Goal("at least", P50_MIN_GOAL)),
        ("aligned_vs_marker_p50_max", "p50, aligned over marker, most of all", aligned, max, None),
        ("marker_vs_unsafe_p50_max", "p50, marker over unsafe, most of all",
         unsafe, max, Goal("at most", UNSAFE_GOAL)),
    ):  # fmt: skip
        if among:
            one = choose(among, key=lambda ratio: ratio.value)
            said = f"{what}: {one.cell.words}"
            found.append(Figure(f"headline.{name}", "x", said, one.value, one.repeats, goal))
    found += _by_query(middles, "p50") + _by_query(tails, "p99")
    return [*found, *_counts(runs)]


def _by_query(among: Sequence[Ratio], share: str) -> list[Figure]:
    return [
        Figure(
            f"{LEVEL}.{one.cell.name}.marker_vs_transaction_{share}",
            "x",
            f"{share}, transaction over marker",
            one.value,
            one.repeats,
        )
        for one in among
    ]


def _lag(runs: Sequence[Measured]) -> list[Figure]:
    lags = [lag for one in runs for lag in one.run.lag_ms]
    if not lags:
        return []
    goal, value = Goal("at most", LAG_MS_P99_MAX), percentile(lags, 99) or 0.0
    return [Figure("generator_lag_ms_p99", "ms", "how late the sender was", value, (), goal)]


def _counts(runs: Sequence[Measured]) -> list[Figure]:
    found = []
    for name, what, kind in (
        ("headline.answers_wrong", "runs with a wrong answer", "wrong"),
        ("headline.runs_failed", "runs that failed", "failed"),
        ("headline.runs_stalled", "runs that stalled", "stalled"),
        ("headline.runs_void", "runs with a late sender", "void: late generator"),
    ):
        bad = sum(one.run.verdict.kind == kind for one in runs)
        goal = None if kind.startswith("void") else Goal("at most", 0)
        found.append(Figure(name, "", what, float(bad), (), goal))
    return found


def ordered(values: Iterable[T]) -> list[T]:
    """Each once, in the order they first come."""
    return list(dict.fromkeys(values))
