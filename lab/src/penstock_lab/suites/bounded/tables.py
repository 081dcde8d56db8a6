"""Tables of the bounded suite, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from penstock_lab.experiment.figures import Figure, ordered
from penstock_lab.experiment.plot import frame, picture
from penstock_lab.experiment.search import SLOPE_MS_PER_S_MAX
from penstock_lab.experiment.table import (
    Column,
    show_legend,
    show_not_counted,
    show_summary,
    systems_table,
    value,
)
from penstock_lab.suites.bounded.cells import POLICIES, STATIC, TRIGGER_S, Plan
from penstock_lab.suites.bounded.runs import Record

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
