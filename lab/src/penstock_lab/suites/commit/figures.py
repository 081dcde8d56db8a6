"""The figures of the suite from its runs. Pure; a run that does not count enters none of them.

A ratio is taken within a repeat, where both systems met the same machine, and of those the median
is shown: theirs over ours, so that above 1 is ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from penstock_lab.experiment.plan import STORES
from penstock_lab.experiment.report import Figure, Goal
from penstock_lab.percentiles import median, percentile
from penstock_lab.suites.commit.batches import growth
from penstock_lab.suites.commit.cells import Cell
from penstock_lab.suites.commit.plan import Plan
from penstock_lab.suites.commit.record import Measured
from penstock_lab.suites.commit.trial import Searched
from penstock_lab.workloads.sending import LAG_MS_P99_MAX

T = TypeVar("T")
Value: TypeAlias = Callable[[Measured], float | None]
OURS = "full"
RIVAL = "tuned"
PAPERS = ("default", "asyncckpt")
EVENT_GOALS = dict(zip(STORES, (2.0, 3.0, 5.0), strict=True))
BATCH_GOAL = 13.4
SUSTAINED_GOAL = 2.0
GROWTH_GOAL = 1.1
MEMORY_GOAL = 1.0


def figures(
    plan: Plan, runs: Sequence[Measured], searched: Sequence[Searched] = ()
) -> list[Figure]:
    """Per cell and system its times and memory; then the generator; then the headline."""
    compared = [one for one in runs if one.kind == "compared"]
    found: list[Figure] = []
    for cell in ordered(one.cell for one in compared):
        here = [one for one in compared if one.cell == cell]
        for system in ordered(one.system for one in here):
            counted = [one for one in here if one.system == system and one.is_counted]
            if counted:
                found += _times(f"{cell.name}.{system}", counted)
    found += _grown(runs)
    found += _sustained(searched)
    found += _lag(runs)
    return [*found, *_headline(plan, runs, compared, searched)]


def event_p50(one: Measured) -> float | None:
    return None if one.run.latency is None else one.run.latency.p50


def event_p99(one: Measured) -> float | None:
    return None if one.run.latency is None else one.run.latency.p99


def memory(one: Measured) -> float | None:
    return one.rss_mb


def behind(one: Measured) -> float | None:
    return one.behind_batches


def batch_p50(one: Measured) -> float | None:
    return percentile(one.took_ms, 50)


def batch_p99(one: Measured) -> float | None:
    return percentile(one.took_ms, 99)


def _times(name: str, counted: Sequence[Measured]) -> list[Figure]:
    """The median of the repeats of each."""
    found = []
    for key, unit, what, value in (
        ("batch_p50_ms", "ms", "time of a micro-batch, median", batch_p50),
        ("batch_p99_ms", "ms", "time of a micro-batch, 99 of 100", batch_p99),
        ("event_p50_ms", "ms", "event-time latency of visible results, median", event_p50),
        ("event_p99_ms", "ms", "event-time latency of visible results, 99 of 100", event_p99),
        ("rss_mb", "MB", "most memory of the JVM in a run", memory),
        ("behind_batches", "", "committed and not in the location at the end", behind),
    ):
        repeats = tuple(number for one in counted if (number := value(one)) is not None)
        middle = median(repeats)
        if middle is not None:
            found.append(Figure(f"{name}.{key}", unit, what, middle, repeats))
    return found


def ratios(runs: Sequence[Measured], rivals: Sequence[str], value: Value) -> list[float]:
    """The worst of the rivals that count over ours, for each repeat in which ours counts."""
    found = []
    for repeat in ordered(one.repeat for one in runs):
        here = {
            one.system: number
            for one in runs
            if one.repeat == repeat and one.is_counted and (number := value(one))
        }
        theirs = [here[name] for name in rivals if name in here]
        if theirs and OURS in here:
            found.append(max(theirs) / here[OURS])
    return found


def _headline(
    plan: Plan,
    runs: Sequence[Measured],
    compared: Sequence[Measured],
    searched: Sequence[Searched],
) -> list[Figure]:
    return [
        *_events(compared),
        *_batches(compared),
        *_sustained_ratio(searched),
        *_growth(plan, runs),
        *_memory(compared),
        *_counts(runs),
    ]


def _by_cell(
    compared: Sequence[Measured], rivals: Sequence[str], value: Value
) -> list[tuple[Cell, float, tuple[float, ...]]]:
    """The median ratio of each cell that has one, and its repeats."""
    found = []
    for cell in ordered(one.cell for one in compared):
        repeats = ratios([one for one in compared if one.cell == cell], rivals, value)
        middle = median(repeats)
        if middle is not None:
            found.append((cell, middle, tuple(repeats)))
    return found


def _events(compared: Sequence[Measured]) -> list[Figure]:
    by_cell = [
        one
        for one in _by_cell(compared, (RIVAL,), event_p99)
        if one[0].is_back_to_back and one[0].has_changelog
    ]
    found = []
    for store, bound in EVENT_GOALS.items():
        here = [one for one in by_cell if one[0].store == store]
        if here:
            cell, value, repeats = min(here, key=lambda one: one[1])
            what = f"p99 of event-time latency, {RIVAL} over {OURS}, least: {cell.words}"
            name, goal = f"headline.event_p99_ratio_{store}_min", Goal("at least", bound)
            found.append(Figure(name, "x", what, value, repeats, goal))
    return found


def _batches(compared: Sequence[Measured]) -> list[Figure]:
    by_cell = _by_cell(compared, PAPERS, batch_p99)
    if not by_cell:
        return []
    cell, value, repeats = max(by_cell, key=lambda one: one[1])
    what = f"p99 of batch time, worst of {', '.join(PAPERS)} over {OURS}, most: {cell.words}"
    goal = Goal("at least", BATCH_GOAL)
    return [Figure("headline.batch_p99_ratio_max", "x", what, value, repeats, goal)]


def _sustained(searched: Sequence[Searched]) -> list[Figure]:
    found = []
    for one in searched:
        how = ", ".join(f"{tried.rate:,} {tried.how}" for tried in one.tried)
        name = f"{one.cell.name}.{one.system}.sustained_per_s"
        found.append(Figure(name, "events/s", f"highest rate that held: {how}", float(one.held)))
    return found


def _sustained_ratio(searched: Sequence[Searched]) -> list[Figure]:
    found = {(one.cell, one.system): one for one in searched}
    each = [
        (found[cell, OURS].held / theirs, cell)
        for cell in ordered(one.cell for one in searched)
        if (cell, OURS) in found
        and (cell, RIVAL) in found
        # One that held no rate is taken at the lowest it failed at, which flatters it.
        and (theirs := found[cell, RIVAL].held or found[cell, RIVAL].failed)
    ]
    if not each:
        return []
    value, cell = min(each, key=lambda one: one[0])
    is_whole = found[cell, OURS].failed and found[cell, RIVAL].failed
    what = f"highest rate that holds, {OURS} over {RIVAL}, least, found once: {cell.words}"
    what += "" if is_whole else "; a search ended at the highest rate that was to be tried"
    goal = Goal("at least", SUSTAINED_GOAL)
    return [Figure("headline.sustainable_ratio", "x", what, value, (), goal)]


def _long(runs: Sequence[Measured]) -> list[tuple[float, Measured]]:
    long = [one for one in runs if one.kind == "growth" and one.is_counted]
    return [(value, one) for one in long if (value := growth(one.took_ms)) is not None]


def _grown(runs: Sequence[Measured]) -> list[Figure]:
    """Of each system of the long runs, so that the one that grows can be seen beside ours."""
    found = []
    for value, one in _long(runs):
        what = f"median batch of the last quarter over the first, {len(one.took_ms)} batches"
        name = f"{one.cell.name}.{one.system}.batch_ms_growth"
        found.append(Figure(name, "x", what, value))
        middle, high = batch_p50(one), batch_p99(one)
        if middle and high:
            what, name = "p99 over median of the batches of the long run", "batch_ms_spike"
            found.append(Figure(f"{one.cell.name}.{one.system}.{name}", "x", what, high / middle))
    return found


def _growth(plan: Plan, runs: Sequence[Measured]) -> list[Figure]:
    if plan.growth is None:
        return []
    each = [
        (value, one)
        for value, one in _long(runs)
        if one.system == OURS and len(one.took_ms) >= plan.growth.batches_min
    ]
    if not each:
        return []
    value, worst = max(each, key=lambda one: one[0])
    what = (
        f"median batch of the last quarter over the first, {len(worst.took_ms)} batches, most: "
        f"{worst.cell.words}"
    )
    repeats = tuple(one for one, _ in each)
    return [
        Figure("headline.batch_ms_growth", "x", what, value, repeats, Goal("at most", GROWTH_GOAL))
    ]


def _memory(compared: Sequence[Measured]) -> list[Figure]:
    """Of the cells that both ran, the most each had in a repeat."""
    each = []
    for repeat in ordered(one.repeat for one in compared):
        sizes = {
            (one.cell, one.system): one.rss_mb
            for one in compared
            if one.repeat == repeat and one.is_counted and one.rss_mb
        }
        both = [cell for cell, name in sizes if name == OURS and (cell, RIVAL) in sizes]
        if both:
            ours, theirs = (max(sizes[cell, name] for cell in both) for name in (OURS, RIVAL))
            each.append(ours / theirs)
    value = median(each)
    if value is None:
        return []
    what = f"most memory of the JVM, {OURS} over {RIVAL}"
    goal = Goal("at most", MEMORY_GOAL)
    return [Figure("headline.memory_full_over_sync", "x", what, value, tuple(each), goal)]


def _lag(runs: Sequence[Measured]) -> list[Figure]:
    """Over every send of every run but the searches', which look for where it gets late."""
    lags = [lag for one in runs if one.kind != "sustain" for lag in one.run.lag_ms]
    if not lags:
        return []
    what, goal = "how late the sender was", Goal("at most", LAG_MS_P99_MAX)
    value = percentile(lags, 99) or 0.0
    return [Figure("generator_lag_ms_p99", "ms", what, value, (), goal)]


def _counts(runs: Sequence[Measured]) -> list[Figure]:
    """A search is to find a rate that fails, so only its wrong answers count."""
    wrong = sum(one.run.verdict.kind == "wrong" for one in runs)
    found = [
        Figure(
            "headline.answers_wrong",
            "",
            "runs with a wrong answer",
            float(wrong),
            (),
            Goal("at most", 0),
        )
    ]
    for name, what, kind in (
        ("headline.runs_failed", "runs that failed", "failed"),
        ("headline.runs_stalled", "runs that stalled", "stalled"),
        ("headline.runs_void", "runs with a late sender", "void: late generator"),
    ):
        bad = sum(one.run.verdict.kind == kind for one in runs if one.kind != "sustain")
        goal = None if kind.startswith("void") else Goal("at most", 0)
        found.append(Figure(name, "", what, float(bad), (), goal))
    return found


def ordered(values: Iterable[T]) -> list[T]:
    """Each once, in the order they first come."""
    return list(dict.fromkeys(values))
