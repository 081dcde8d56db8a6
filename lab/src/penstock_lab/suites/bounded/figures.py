"""Figures of the bounded suite from its runs. Pure; a run that does not count enters none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock_lab.experiment.figures import (
    Figure,
    Goal,
    latency_p50,
    latency_p99,
    medians,
    middle,
    ordered,
    sender_lag,
    verdict_counts,
)
from penstock_lab.experiment.search import SLOPE_MS_PER_S_MAX
from penstock_lab.suites.bounded.cells import POLICIES, STATIC, TRIGGER_S, Plan
from penstock_lab.suites.bounded.runs import Record

MEAN_GOAL = 70.7


def mean_ms(record: Record) -> float | None:
    return record.query_run.mean_ms


FIGURES = (
    ("mean_ms", "ms", "an input row, intended send to visible, in the mean", mean_ms),
    ("p50_ms", "ms", "the same, median", latency_p50),
    ("p99_ms", "ms", "the same, 99 of 100", latency_p99),
    (
        *("batch_max_mean_ms", "ms", "the longest latency of each batch, in the mean"),
        lambda record: record.query_run.batch_max_mean_ms,
    ),
    (
        *("batch_max_ms", "ms", "the longest latency of any row"),
        lambda record: record.query_run.batch_max and record.query_run.batch_max.max,
    ),
    (
        *("batch_rows", "rows", "rows of a batch, median"),
        lambda record: float(
            np.median([span.rows for span in record.query_run.measured if span.rows] or [0.0])
        ),
    ),
    ("growth_ms_per_s", "ms/s", "how fast latency rises", lambda r: r.run.slope_ms_per_s),
    ("throughput", "rows/s", "rows per second of batch time", lambda r: r.query_run.throughput),
)


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Per query, rate and system its latencies; then how much lower ours is, and past the limit."""
    compared = [record for record in records if record.kind != "sustain"]
    made: list[Figure] = []
    for cell in ordered(record.cell for record in compared):
        for system in ordered(record.system for record in compared if record.cell == cell):
            mine = [r for r in compared if (r.cell, r.system) == (cell, system)]
            made += medians(f"{cell.name}.{system}", mine, FIGURES)
    for query in ordered(cell.query for cell in plan.cells):
        made += reduction(query, [r for r in compared if r.kind == "compared"])
        made += past_limit(query, records)
    judged = [record.run for record in compared]
    return [*made, *sender_lag(judged), *verdict_counts([r.run for r in records], judged)]


def reduction(query: str, records: Sequence[Record]) -> list[Figure]:
    """Mean latency of our policy below that of the fixed trigger, in percent."""
    policy = POLICIES[query][0]
    means = {
        record.system: mean
        for record in records
        if record.cell.query == query and record.is_counted and (mean := mean_ms(record))
    }
    if STATIC not in means or policy not in means:
        return []
    lower = (1 - means[policy] / means[STATIC]) * 100
    is_tumbling = query.endswith("tumbling")
    name = f"headline.mean_reduction_{'tumbling' if is_tumbling else 'sliding'}"
    sentence = f"mean latency of an input row, {policy} below a trigger of {TRIGGER_S:g} s: {query}"
    return middle(
        name, "%", sentence, [lower], Goal("at least", MEAN_GOAL) if is_tumbling else None
    )


def past_limit(query: str, records: Sequence[Record]) -> list[Figure]:
    """Growth of latency, of both, at a rate that the fixed trigger does not sustain."""
    past = next((r for r in records if r.kind == "past limit" and r.cell.query == query), None)
    if past is None:
        return []
    tried = [r for r in records if r.kind == "sustain" and r.cell == past.cell]
    made = [Figure(f"{query}.static_fails_at", "events/s", "the lowest rate", float(past.run.rate))]
    for record in (*tried, past):
        if record.run.slope_ms_per_s is not None:
            name = f"{past.cell.name}.{record.system}.past_growth_ms_per_s"
            words = f"how fast latency rises there; up to {SLOPE_MS_PER_S_MAX:g} counts as level"
            made.append(Figure(name, "ms/s", words, record.run.slope_ms_per_s))
    return made
