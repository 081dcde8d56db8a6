"""Figures of the prefetch suite while a backlog is worked off: throughput and processor time."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.experiment.figures import SHARE, Figure, Goal, middle, ordered
from penstock_lab.percentiles import median
from penstock_lab.suites.prefetch.cells import Workload
from penstock_lab.suites.prefetch.modes import LRU, OFF, OURS
from penstock_lab.suites.prefetch.records import Record

THROUGHPUT_GOAL = 1.0
OVERHEAD_MAX = 0.03
STATE_OVER_BUDGET_MIN = 10.0


def backlog_figures(workload: Workload, backlogs: Sequence[Record]) -> list[Figure]:
    """Throughput and processor time of every mode that worked off the workload's backlog."""
    here = [record for record in backlogs if record.cell.workload == workload]
    made: list[Figure] = []
    plain = _cpu(here, LRU)
    for mode in ordered(record.system for record in here):
        mine = [record for record in here if record.system == mode]
        name = f"{workload.name}.{mode}"
        rates = [r.filled_run.throughput for r in mine if r.filled_run.throughput is not None]
        made += middle(f"{name}.throughput", "rows/s", "rows per second of a backlog", rates)
        cpu = _cpu(here, mode)
        if cpu is not None and plain is not None:
            sentence = "processor time per row over that of lru, the same backlog"
            made.append(Figure(f"{name}.overhead_cpu", SHARE, sentence, cpu / plain - 1))
    state_bytes = max(record.state_bytes for record in here)
    if state_bytes and not workload.is_lookup:
        over = state_bytes / (workload.budget_mb * 2**20)
        goal = Goal("at least", STATE_OVER_BUDGET_MIN) if workload.is_main else None
        words = f"size of the state of {workload.name} over the budget"
        made.append(Figure(f"{workload.name}.state_over_budget", "x", words, over, (), goal))
    return made


def _cpu(records: Sequence[Record], mode: str) -> float | None:
    each = [r.filled_run.cpu_us_per_row for r in records if r.system == mode]
    return median([cpu for cpu in each if cpu is not None])


def throughput_headline(backlogs: Sequence[Record]) -> list[Figure]:
    """Ours over the best other, both working off the same backlog: the least of the workloads."""
    ratios: dict[str, float] = {}
    for workload in ordered(record.cell.workload for record in backlogs):
        if workload.is_lookup or not workload.is_main:
            continue
        per_s = {
            mode: rate
            for mode in ordered(record.system for record in backlogs)
            if (
                rate := median(
                    [
                        record.filled_run.throughput
                        for record in backlogs
                        if (record.cell.workload, record.system) == (workload, mode)
                        and record.filled_run.throughput is not None
                    ]
                )
            )
        }
        best = max((rate for mode, rate in per_s.items() if not mode.startswith(OURS)), default=0)
        if best and OURS in per_s:
            ratios[workload.name] = per_s[OURS] / best
    if not ratios:
        return []
    least = min(ratios, key=lambda name: ratios[name])
    words = f"rows per second of a backlog, ours over the best other: {least}"
    goal = Goal("at least", THROUGHPUT_GOAL)
    return [Figure("headline.throughput_ratio_min", "x", words, ratios[least], (), goal)]


def overhead_headline(overhead: Sequence[Record]) -> list[Figure]:
    """Processor time per row, ours over `off`, turn by turn; the first turn warms up."""
    by_turn: dict[int, dict[str, float]] = {}
    for record in overhead:
        cpu = record.filled_run.cpu_us_per_row
        if record.repeat and cpu is not None:
            by_turn.setdefault(record.repeat, {})[record.system] = cpu
    over = [turn[OURS] / turn[OFF] - 1 for turn in by_turn.values() if {OURS, OFF} <= turn.keys()]
    words = "processor time per row over off, state in memory, in one process"
    goal = Goal("at most", OVERHEAD_MAX)
    return middle("headline.overhead_in_memory", SHARE, words, over, goal)
