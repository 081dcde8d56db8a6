"""The figures of a suite from its runs. Pure; a run that does not count enters none of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TypeVar

from penstock_lab.experiment.latency import Latencies
from penstock_lab.experiment.record import Run
from penstock_lab.experiment.report import Figure, Goal
from penstock_lab.experiment.suites import key_of
from penstock_lab.percentiles import median, percentile
from penstock_lab.workloads.sending import LAG_MS_P99_MAX

T = TypeVar("T")
OURS = "penstock"
RIVALS = ("tuned", "default")
RATIO_MIN = 0.9


def figures(runs: Sequence[Run]) -> list[Figure]:
    """Per query: latencies of every system and their ratios; then the headline."""
    found: list[Figure] = []
    ratios: dict[str, list[Figure]] = {rival: [] for rival in RIVALS}
    for query in _ordered(run.query for run in runs):
        mine = [run for run in runs if run.query == query]
        for system in _ordered(run.system for run in mine):
            found += _latencies(key_of(query), system, mine)
        for rival in RIVALS:
            ratio = _ratio(key_of(query), rival, mine)
            if ratio is not None:
                found.append(ratio)
                ratios[rival].append(ratio)
    found += _generator(runs)
    return [*found, *_headline(runs, ratios)]


def _latencies(key: str, system: str, runs: Sequence[Run]) -> list[Figure]:
    counted = [run for run in runs if run.system == system and run.is_counted]
    whole = [run.latency for run in counted if run.latency is not None]
    past = [run.past_window for run in counted if run.past_window is not None]
    found = []
    if whole:
        found += [
            _middle(f"{key}.{system}.p50_ms", "latency of a result, median", whole, "p50"),
            _middle(f"{key}.{system}.p99_ms", "latency of a result, 99 of 100", whole, "p99"),
        ]
    if past:
        what = "past window end and watermark delay, 99 of 100"
        found.append(_middle(f"{key}.{system}.past_window_p99_ms", what, past, "p99"))
    return found


def _middle(name: str, what: str, values: Sequence[Latencies], share: str) -> Figure:
    repeats = tuple(float(getattr(one, share)) for one in values)
    return Figure(name, "ms", what, median(repeats) or 0.0, repeats)


def _ratio(key: str, rival: str, runs: Sequence[Run]) -> Figure | None:
    """Theirs over ours: the middle of what every run of theirs and every run of ours give.

    With three repeats that is the middle of nine, not of three, and one disturbed run still does
    not move it far. Beside it, for the spread, the ratio within each repeat.
    """
    theirs, ours = (_p99_by_repeat(runs, system) for system in (rival, OURS))
    if not theirs or not ours:
        return None
    every = [math.log(one / other) for one in theirs.values() for other in ours.values()]
    repeats = tuple(theirs[repeat] / ours[repeat] for repeat in theirs if repeat in ours)
    what = f"p99 of {rival} over that of {OURS}; above 1 is ahead"
    # Of an even number the middle two count alike, whichever system is above the line.
    value = math.exp(statistics.median(every))
    return Figure(f"{key}.ratio_p99_vs_{rival}", "x", what, value, repeats)


def _p99_by_repeat(runs: Sequence[Run], system: str) -> dict[int, float]:
    return {
        run.repeat: run.latency.p99
        for run in runs
        if run.system == system
        and run.is_counted
        and run.latency is not None
        and run.latency.p99 > 0
    }


def _generator(runs: Sequence[Run]) -> list[Figure]:
    """Over every send of every run, those that do not count included."""
    lags = [lag for run in runs for lag in run.lag_ms]
    if not lags:
        return []
    goal = Goal("at most", LAG_MS_P99_MAX)
    p99 = percentile(lags, 99) or 0.0
    return [Figure("generator_lag_ms_p99", "ms", "how late the sender was", p99, (), goal)]


def _headline(runs: Sequence[Run], ratios: dict[str, list[Figure]]) -> list[Figure]:
    found = []
    for rival, figures in ratios.items():
        if figures:
            goal = Goal("at least", RATIO_MIN) if rival == RIVALS[0] else None
            least = min(figures, key=lambda one: one.value)
            what = f"least of the ratios to {rival}: {least.name.split('.')[0]}"
            name = f"headline.ratio_p99_vs_{rival}_min"
            found.append(Figure(name, "x", what, least.value, least.repeats, goal))
    counts = {
        "headline.answers_wrong": ("runs with a wrong answer", "wrong"),
        "headline.runs_failed": ("runs that failed", "failed"),
        "headline.runs_stalled": ("runs that stalled", "stalled"),
        "headline.runs_void": ("runs with a late sender", "void: late generator"),
    }
    for name, (what, kind) in counts.items():
        bad = sum(run.verdict.kind == kind for run in runs)
        goal = Goal("at most", 0) if kind != "void: late generator" else None
        found.append(Figure(name, "", what, float(bad), (), goal))
    return found


def _ordered(values: Iterable[T]) -> list[T]:
    """Each once, in the order they first come."""
    return list(dict.fromkeys(values))
