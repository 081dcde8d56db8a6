"""Single queries of the runs in the deadlines suite, and the numbers that are asked of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock_lab.experiment.latency import Latencies
from penstock_lab.experiment.record import Measured
from penstock_lab.experiment.together import QueryRun
from penstock_lab.suites.deadlines.cells import Cell, Plan
from penstock_lab.suites.deadlines.modes import MODES
from penstock_lab.suites.deadlines.record import Record


class Single(Measured[Cell], frozen=True, kw_only=True):
    """One query of a run, as its cell."""

    query_run: QueryRun


Value = Callable[[Single], float | None]


def singles(plan: Plan, records: Sequence[Record]) -> list[Single]:
    """Every query of every compared run; a mode that knows no deadline is held against each."""
    split = []
    for record in records:
        is_blind = MODES[record.system].is_blind
        for deadline_s in plan.deadlines_s if is_blind else (record.cell.deadline_s,):
            for query, query_run in record.queries.items():
                cell = Cell(query, deadline_s, record.cell.traffic)
                split.append(Single(cell, query_run.run, record.kind, query_run=query_run))
    return split


def of_latency(latency: Latencies | None, key: str) -> float | None:
    return None if latency is None else float(getattr(latency, key))


def p50(single: Single) -> float | None:
    return of_latency(single.run.latency, "p50")


def p95(single: Single) -> float | None:
    return of_latency(single.run.latency, "p95")


def p99(single: Single) -> float | None:
    return of_latency(single.run.latency, "p99")


def mean(single: Single) -> float | None:
    return single.query_run.mean_ms


def batch_throughput(single: Single) -> float | None:
    return single.query_run.throughput


def misses(single: Single) -> float | None:
    return single.query_run.miss_ratios.get(f"{single.cell.deadline_s:g}")
