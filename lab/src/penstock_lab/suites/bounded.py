"""Latency of a window's query over many minutes: a fixed trigger of 10 s against two policies.

As figures 8 and 9 of the LMStream paper: the longest latency of each batch, and its rows, over
time. Then past the rate that the fixed trigger sustains: its latency grows, and does ours?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.console import Console

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
from penstock_lab.experiment.needs import require_port, require_queries
from penstock_lab.experiment.plot import frame, picture
from penstock_lab.experiment.record import in_file
from penstock_lab.experiment.search import SLOPE_MS_PER_S_MAX
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.table import (
    Column,
    show_legend,
    show_not_counted,
    show_summary,
    systems_table,
    value,
)
from penstock_lab.suites.bounded_runs import (
    CONF,
    POLICIES,
    STATIC,
    TRIGGER_S,
    Plan,
    Record,
    plan_of,
    runs,
)

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


COLUMNS = (
    Column("mean", value("mean_ms")),
    Column("p50", value("p50_ms")),
    Column("p99", value("p99_ms")),
    Column("batch\nmax", value("batch_max_mean_ms")),
    Column("longest", value("batch_max_ms")),
    Column("rows", value("batch_rows")),
    Column("ms/s", value("growth_ms_per_s")),
)
LEGEND = (
    "ms from an input row's intended send to its batch's marker; batch max: longest latency of a "
    "batch, in the mean; rows: of a batch, median; ms/s: how fast latency rises"
)


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    """Latencies by query and system, then whether the fixed trigger grows where ours does not."""
    compared = [record for record in records if record.kind != "sustain"]
    systems = ordered(record.system for record in compared)
    title = f"bounded: {plan.measure_s:g} s"
    console.print(systems_table(title, "query and system", COLUMNS, systems, compared, figures))
    show_legend(console, LEGEND)
    show_summary(console, "bounded", figures)
    for query in plan.past_queries:
        console.print(limit_sentence(query, records), soft_wrap=True)
    show_not_counted(console, compared)


def limit_sentence(query: str, records: Sequence[Record]) -> str:
    """Whether there is a rate at which the fixed trigger grows and ours does not, in words."""
    past = next((r for r in records if r.kind == "past limit" and r.cell.query == query), None)
    if past is None:
        return f"{query}: no rate was found at which a trigger of {TRIGGER_S:g} s grows"
    slope, rate = past.run.slope_ms_per_s, past.run.rate
    is_level = past.is_counted and slope is not None and slope <= SLOPE_MS_PER_S_MAX
    grows = "does not grow" if is_level else "grows too, so this rate shows no difference"
    return f"{query} at {rate:,}/s: {STATIC} grows, {past.system} {grows}"


def draw(plan: Plan, records: Sequence[Record], figures: Sequence[Figure], path: Path) -> None:
    """Draw the longest latency of each batch, and its rows, over time: figures 8 and 9."""
    compared = [r for r in records if r.kind == "compared" and r.is_counted]
    systems = ordered((STATIC, *(POLICIES[cell.query][0] for cell in plan.cells)))
    size = (11.0, 0.9 + 2.8 * len(plan.cells))
    title = "bounded: longest latency and rows of each batch"
    with picture(path, title, systems, (len(plan.cells), 2), size, 0.35) as (axes, colours):
        for row, cell in enumerate(plan.cells):
            here = [record for record in compared if record.cell == cell]
            runs_here = [record.run for record in here]
            for record in here:
                spans = [span for span in record.query_run.spans if span.rows]
                start_ms = spans[0].cut_ms if spans else 0.0
                minutes = [(span.visible_ms - start_ms) / 60_000 for span in spans]
                style = {"color": colours[record.system], "linewidth": 1.1, "alpha": 0.8}
                axes[row][0].plot(minutes, [span.oldest_ms for span in spans], **style)
                axes[row][1].plot(minutes, [span.rows for span in spans], **style)
            frame(axes[row][0], cell.words, runs_here, "minutes", "longest latency, ms")
            frame(axes[row][1], cell.words, runs_here, "minutes", "rows of a batch")
            for axis in axes[row]:
                axis.set_ylim(bottom=0)


def for_file(record: Record) -> dict[str, Any]:
    """A run for the result file."""
    built: dict[str, Any] = msgspec.to_builtins(record.query_run)
    built["measured"] = len(record.query_run.measured)
    return {
        **in_file(record.run),
        "kind": record.kind,
        "cell": record.cell.name,
        **{name: part for name, part in built.items() if name != "run"},
    }


def require(plan: Plan) -> None:
    require_queries({cell.query for cell in plan.cells})
    require_port()


SUITE: Suite[Plan, Record] = Suite(
    name="bounded",
    plan_of=plan_of,
    steps=lambda plan: plan.steps,
    minutes=lambda plan: plan.minutes,
    runs=runs,
    figures=figures,
    settings=lambda plan: {**msgspec.to_builtins(plan), "spark": CONF},
    in_file=for_file,
    show=show,
    draw=draw,
    require=require,
    is_right=lambda record: record.is_right,
)
