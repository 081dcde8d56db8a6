"""Figures of the commit suite from its runs. Pure; a run that does not count enters none of them.

A ratio is theirs over ours, so that above 1 is ahead.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock_lab.experiment.batch_times import growth
from penstock_lab.experiment.figures import (
    Figure,
    Goal,
    latency_p50,
    latency_p99,
    medians,
    middle,
    ordered,
    ratios,
    sender_lag,
    verdict_counts,
)
from penstock_lab.experiment.losses import beside
from penstock_lab.experiment.plan import STORES
from penstock_lab.experiment.search import Searched, ended_search, highest_rate
from penstock_lab.percentiles import percentile
from penstock_lab.suites.commit.ablation import batch_p50, step_figures
from penstock_lab.suites.commit.cells import FILES, PLUG_IN_SYNC, REPLICATED, Plan
from penstock_lab.suites.commit.runs import Record

OURS = "full"
RIVAL = "tuned"
EVENT_GOALS = dict(zip(STORES, (2.0, 3.0, 5.0), strict=True))
SUSTAINED_GOAL, GROWTH_GOAL, MEMORY_GOAL = 2.0, 1.1, 1.0
EVENT_RATIOS = {
    "event_p99_ratio_{}_min": (RIVAL, OURS),
    "event_p99_ratio_{}_ablated": (FILES, OURS),
    "replicated_ratio_{}": (RIVAL, REPLICATED),
    "plug_in_ratio_{}": ("tuned-files", "plug-in"),
    "plug_in_ratio_{}_ablated": (PLUG_IN_SYNC, "plug-in"),
}
"""Names of the ratios of latencies on a store: of whose over whose."""


def batch_p99(record: Record) -> float | None:
    return percentile(record.took_ms, 99)


FIGURES = (
    ("batch_p50_ms", "ms", "time of a micro-batch, median", batch_p50),
    ("batch_p99_ms", "ms", "time of a micro-batch, 99 of 100", batch_p99),
    ("event_p50_ms", "ms", "event-time latency of visible results, median", latency_p50),
    ("event_p99_ms", "ms", "event-time latency of visible results, 99 of 100", latency_p99),
    ("rss_mb", "MB", "most memory of the JVM in a run", lambda record: record.rss_mb),
    (
        *("behind_batches", "", "committed and not in the location at the end"),
        lambda record: record.behind_batches,
    ),
)


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Per cell and system its times and memory; then the generator; then the headline."""
    compared = [record for record in records if record.kind == "compared"]
    long = [record for record in records if record.kind == "growth" and record.is_counted]
    searched = searches(plan, records)
    # A search is to find a rate that fails, and where the sender gets late.
    judged = [record.run for record in records if record.kind != "sustain"]
    made: list[Figure] = []
    for cell in ordered(record.cell for record in compared):
        here = [record for record in compared if record.cell == cell]
        for system in ordered(record.system for record in here):
            mine = [record for record in here if record.system == system]
            made += medians(f"{cell.name}.{system}", mine, FIGURES)
    return [
        *made,
        *step_figures(compared),
        *grown(long),
        *highest_rates(searched),
        *sender_lag(judged),
        *event_ratios(compared),
        *sustained_ratio(searched),
        *most_growth(plan, long),
        *memory_ratio(compared),
        *verdict_counts([record.run for record in records], judged),
    ]


def searches(plan: Plan, records: Sequence[Record]) -> list[Searched]:
    """The searches that came to their end; a run in one has its cell at another rate."""
    made = []
    for cell in plan.sustain.cells if plan.sustain else ():
        for system in plan.sustain.systems if plan.sustain else ():
            mine = [
                record.run
                for record in records
                if (record.kind, record.system) == ("sustain", system)
                and msgspec.structs.replace(record.cell, rate=cell.rate) == cell
            ]
            assert plan.sustain is not None
            searched = ended_search(plan.sustain, mine, cell, system)
            made += [] if searched is None else [searched]
    return made


def event_ratios(compared: Sequence[Record]) -> list[Figure]:
    """By name and store the least ratio of the queries, back to back and with a changelog."""
    made = []
    for name, (theirs, ours) in EVENT_RATIOS.items():
        by_cell = [
            ratio
            for ratio in ratios(compared, (theirs,), ours, latency_p99)
            if ratio.cell.is_back_to_back and ratio.cell.has_changelog
        ]
        for store, bound in EVENT_GOALS.items():
            here = [ratio for ratio in by_cell if ratio.cell.store == store]
            if here:
                least = min(here, key=lambda ratio: ratio.value)
                sentence = (
                    f"p99 of event-time latency, {theirs} over {ours}, least: {least.cell.words}; "
                    f"{beside(theirs, ours)}"
                )
                goal = Goal("at least", bound) if (theirs, ours) == (RIVAL, OURS) else None
                figure = f"headline.{name.format(store)}"
                made.append(Figure(figure, "x", sentence, least.value, least.repeats, goal))
    return made


def highest_rates(searched: Sequence[Searched]) -> list[Figure]:
    return [highest_rate(f"{s.cell.name}.{s.system}.sustained_per_s", s) for s in searched]


def sustained_ratio(searched: Sequence[Searched]) -> list[Figure]:
    by_system = {(search.cell, search.system): search for search in searched}
    each = []
    for cell in ordered(search.cell for search in searched):
        ours, theirs = (by_system.get((cell, system)) for system in (OURS, RIVAL))
        # One that held no rate is taken at the lowest it failed at, which flatters it.
        if ours and theirs and (rate := theirs.held or theirs.failed):
            each.append((ours.held / rate, cell, bool(ours.failed and theirs.failed)))
    if not each:
        return []
    least, cell, is_whole = min(each, key=lambda pair: pair[0])
    sentence = f"highest rate that holds, {OURS} over {RIVAL}, least, found once: {cell.words}"
    sentence += "" if is_whole else "; a search ended at the highest rate that was to be tried"
    sentence += f"; {beside(RIVAL, OURS)}"
    goal = Goal("at least", SUSTAINED_GOAL)
    return [Figure("headline.sustainable_ratio", "x", sentence, least, (), goal)]


def grown(long: Sequence[Record]) -> list[Figure]:
    """Growth in each of the long runs, so that the one that grows can be seen beside ours."""
    made = []
    for record in long:
        factor, p50, p99 = growth(record.took_ms), batch_p50(record), batch_p99(record)
        name = f"{record.cell.name}.{record.system}"
        if factor is not None:
            count = len(record.took_ms)
            sentence = f"median batch of the last quarter over the first, {count} batches"
            made.append(Figure(f"{name}.batch_ms_growth", "x", sentence, factor))
            if p50 and p99:
                sentence = "p99 over median of the batches of the long run"
                made.append(Figure(f"{name}.batch_ms_spike", "x", sentence, p99 / p50))
    return made


def most_growth(plan: Plan, long: Sequence[Record]) -> list[Figure]:
    each = [
        (factor, record)
        for record in long
        if record.system == OURS
        and plan.growth is not None
        and len(record.took_ms) >= plan.growth.batches_min
        and (factor := growth(record.took_ms)) is not None
    ]
    if not each:
        return []
    most, worst = max(each, key=lambda pair: pair[0])
    sentence = (
        f"median batch of the last quarter over the first, {len(worst.took_ms)} batches, most: "
        f"{worst.cell.words}"
    )
    repeats, goal = tuple(factor for factor, _ in each), Goal("at most", GROWTH_GOAL)
    return [Figure("headline.batch_ms_growth", "x", sentence, most, repeats, goal)]


def memory_ratio(compared: Sequence[Record]) -> list[Figure]:
    """Memory at the cells that both ran: the most each had in a repeat."""
    each = []
    for repeat in ordered(record.repeat for record in compared):
        sizes = {
            (record.cell, record.system): record.rss_mb
            for record in compared
            if record.repeat == repeat and record.is_counted and record.rss_mb
        }
        both = [cell for cell, name in sizes if name == OURS and (cell, RIVAL) in sizes]
        if both:
            ours, theirs = (max(sizes[cell, name] for cell in both) for name in (OURS, RIVAL))
            each.append(ours / theirs)
    sentence = f"most memory of the JVM, {OURS} over {RIVAL}"
    goal = Goal("at most", MEMORY_GOAL)
    return middle("headline.memory_full_over_sync", "x", sentence, each, goal)
