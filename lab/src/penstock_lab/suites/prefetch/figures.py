"""Figures of the prefetch suite from its runs. Pure.

A ratio is the best other's latency over ours, so that above 1 is ahead. A mode that fell behind its
rate is in all of them with the latencies it had, which are a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from penstock_lab.experiment.figures import (
    SHARE,
    Figure,
    Goal,
    Ratio,
    middle,
    ordered,
    sender_lag,
    verdict_counts,
)
from penstock_lab.experiment.filled import too_few
from penstock_lab.percentiles import median
from penstock_lab.suites.prefetch.adaptation import adaptation_figures
from penstock_lab.suites.prefetch.backlog_figures import (
    backlog_figures,
    overhead_headline,
    throughput_headline,
)
from penstock_lab.suites.prefetch.cells import Cell, Plan
from penstock_lab.suites.prefetch.modes import OURS
from penstock_lab.suites.prefetch.records import Record

Value: TypeAlias = Callable[[Record], float | None]
P999_GOAL, P50_GOAL, LOOKUP_GOAL = 2.0, 1.0, 1.0
ON_PATH_MAX = 0.01


def p50(record: Record) -> float | None:
    return None if record.run.latency is None else record.run.latency.p50


def p99(record: Record) -> float | None:
    return None if record.run.latency is None else record.run.latency.p99


def p999(record: Record) -> float | None:
    return None if record.run.latency is None else record.run.latency.p999


AT_A_RATE: tuple[tuple[str, str, str, Value], ...] = (
    ("p50_ms", "ms", "an input row, intended send to its batch's marker, median", p50),
    ("p99_ms", "ms", "the same, 99 of 100", p99),
    ("p999_ms", "ms", "the same, 999 of 1,000", p999),
    (
        *("hit_ratio", SHARE, "reads of state that the cache answered"),
        lambda record: record.filled_run.cache.hit_ratio,
    ),
    (
        *("unused_ratio", SHARE, "prefetched entries that nobody came to read"),
        lambda record: record.filled_run.cache.unused_ratio,
    ),
    (
        *("hint_share", SHARE, "bytes of hints over bytes of the shuffle"),
        lambda record: record.filled_run.cache.hint_share,
    ),
    (
        *("block_misses_per_row", "", "reads of a block that RocksDB's cache did not have"),
        lambda record: record.filled_run.block_misses_per_row,
    ),
    (
        *("read_us_per_row", "us", "a row's reads of state on the path of its task"),
        # Look-ups read no state worth it.
        lambda r: None if r.cell.workload.is_lookup else r.filled_run.read_us_per_row,
    ),
    (
        *("cpu_us_per_row", "us", "a row's processor time, of driver and server"),
        lambda record: record.filled_run.cpu_us_per_row,
    ),
)


def counted(records: Sequence[Record]) -> list[Record]:
    """Runs that enter figures: those that count, and those that only fell behind."""
    return [record for record in records if record.is_counted or record.is_bound]


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Latencies at every rate, throughput of backlogs, then the headline."""
    compared = counted([record for record in records if record.kind == "compared"])
    backlogs = [r for r in records if r.kind == "backlog" and r.is_counted]
    overhead = [r for r in records if r.kind == "overhead" and r.is_counted]
    made: list[Figure] = []
    for cell in ordered(record.cell for record in compared):
        for system in ordered(record.system for record in compared if record.cell == cell):
            mine = [r for r in compared if (r.cell, r.system) == (cell, system)]
            made += _at_rate(cell, system, mine)
    for workload in ordered(record.cell.workload for record in backlogs):
        made += backlog_figures(workload, backlogs)
    within_rate = [record.run for record in records if not record.is_bound]
    return [
        *made,
        *adaptation_figures([record for record in records if record.kind == "adaptation"]),
        *sender_lag([record.run for record in records if record.kind == "compared"]),
        *latency_headlines(compared),
        *on_path(compared),
        *throughput_headline(backlogs),
        *overhead_headline(overhead),
        *short_runs(plan, compared),
        *runs_behind(compared),
        *verdict_counts([record.run for record in records], within_rate),
    ]


def _at_rate(cell: Cell, system: str, mine: Sequence[Record]) -> list[Figure]:
    name = f"{cell.name}.{system}"
    made: list[Figure] = []
    for key, unit, sentence, value in AT_A_RATE:
        numbers = [number for record in mine if (number := value(record)) is not None]
        made += middle(f"{name}.{key}", unit, sentence, numbers)
    behind = sum(record.filled_run.is_behind for record in mine)
    sentence = "runs that fell behind: latencies are a lower bound then"
    return [*made, Figure(f"{name}.behind", "", sentence, float(behind))]


def best_ratios(records: Sequence[Record], value: Value) -> list[Ratio[Cell]]:
    """At every cell the best other over ours, within each repeat.

    The best other is the one whose median over the repeats is the least. Where ours fell behind,
    the ratio is an upper bound; `headline.runs_behind` says so.
    """
    made = []
    for cell in ordered(record.cell for record in records):
        here = [record for record in records if record.cell == cell]
        ours = {r.repeat: r for r in here if r.system == OURS}
        middles = {
            system: number
            for system in ordered(record.system for record in here)
            if not system.startswith(OURS)
            and (number := median([v for r in here if r.system == system and (v := value(r))]))
        }
        if not middles:
            continue
        best = min(middles, key=lambda system: middles[system])
        repeats = [
            theirs / mine
            for record in here
            if record.system == best
            and record.repeat in ours
            and (theirs := value(record))
            and (mine := value(ours[record.repeat]))
        ]
        middle_value = median(repeats)
        if middle_value is not None:
            made.append(Ratio(cell, middle_value, tuple(repeats)))
    return made


def judged(compared: Sequence[Record], *, is_lookup: bool) -> list[Record]:
    """Runs that the headline is about: the main workloads at the higher rate."""
    return [
        record
        for record in compared
        if record.cell.workload.is_main
        and record.cell.level == "high"
        and record.cell.workload.is_lookup == is_lookup
    ]


def latency_headlines(compared: Sequence[Record]) -> list[Figure]:
    """The least ratio of the workloads, at the higher rate."""
    state, lookups = judged(compared, is_lookup=False), judged(compared, is_lookup=True)
    made = []
    for name, records, value, sentence, bound in (
        ("headline.p999_ratio_min", state, p999, "p99.9", P999_GOAL),
        ("headline.p50_ratio_min", state, p50, "median", P50_GOAL),
        ("lookup.p999_ratio_min", lookups, p999, "p99.9 of look-ups", LOOKUP_GOAL),
    ):
        least = min(best_ratios(records, value), key=lambda each: each.value, default=None)
        if least is not None:
            words = f"{sentence}, best other over ours, least of the workloads: {least.cell.words}"
            goal = Goal("at least", bound)
            made.append(Figure(name, "x", words, least.value, least.repeats, goal))
    return made


def on_path(compared: Sequence[Record]) -> list[Figure]:
    """Batches of ours whose rows waited for a look-up, of all that looked anything up."""
    ours = [r for r in compared if r.system == OURS and r.cell.workload.is_lookup]
    counts = [record.filled_run.cache for record in ours]
    shares = [each.batches_on_path / each.lookup_batches for each in counts if each.lookup_batches]
    words = "batches of ours whose rows waited for a look-up"
    return middle("lookup.batches_on_path", SHARE, words, shares, Goal("at most", ON_PATH_MAX))


def runs_behind(compared: Sequence[Record]) -> list[Figure]:
    """Runs of ours that fell behind their rate: the headline's ratios are upper bounds then."""
    ours = [record for record in compared if record.system == OURS]
    if not ours:
        return []
    behind = float(sum(record.filled_run.is_behind for record in ours))
    words = "runs of ours that fell behind their rate"
    return [Figure("headline.runs_behind", "", words, behind, (), Goal("at most", 0))]


def short_runs(plan: Plan, compared: Sequence[Record]) -> list[Figure]:
    """Runs with fewer batches than a p99.9 needs: theirs is hardly more than the slowest one."""
    if not compared:
        return []
    short = too_few([record.filled_run for record in compared], plan.batches_min)
    words = f"runs with fewer than {plan.batches_min} measured batches"
    return [Figure("headline.runs_short", "", words, float(len(short)), (), Goal("at most", 0))]
