"""Tables of the paper suite, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console

from penstock_lab.experiment.figures import Figure, ordered
from penstock_lab.experiment.latency import curve
from penstock_lab.experiment.plot import over_batches, picture, spread
from penstock_lab.experiment.record import Run
from penstock_lab.experiment.table import (
    Column,
    Figures,
    show_figures,
    show_left_out,
    show_legend,
    show_not_counted,
    show_short_warm_ups,
    show_summary,
    systems_table,
    value,
    with_range,
)
from penstock_lab.suites import protocols
from penstock_lab.suites.paper.batch_figures import (
    is_behind,
    on_measured_store,
    uncalibrated_queries,
    with_bounds,
)
from penstock_lab.suites.paper.batch_runs import Record as BatchRecord
from penstock_lab.suites.paper.cells import SYSTEMS, Plan
from penstock_lab.suites.paper.runs import Record, of_batches, of_graphs
from penstock_lab.suites.protocols.runs import Record as GraphRecord

RANGE_WIDTH = len("(1234-5678)")


def cores(figures: Figures, cell: object, system: str) -> str:
    figure = figures.get(f"{getattr(cell, 'name', '')}.{system}.cpu_cores")
    return "-" if figure is None else f"{figure.value:.2f}"


COLUMNS = (
    Column("batch\np50", value("batch_p50_ms")),
    Column("batch\np99", with_range("batch_p99_ms"), True, RANGE_WIDTH),
    Column("commit\np99", value("commit_p99_ms")),
    Column("kB/s", value("throughput_kb_per_s")),
    Column("seen\np99", value("event_p99_ms")),
    Column("cores", cores),
    Column("MB", value("rss_mb")),
)
LEGEND = (
    "batch: Spark's time of a micro-batch; commit: of its state, summed over its tasks; kB/s: the "
    "bytes of a batch, 65 for each row, over its time; seen: from the intended send to a reader "
    "outside; cores: kept busy by driver and server; MB: the JVM's most; medians of the repeats, "
    "in brackets their range; runs: those that count, lower bounds among them"
)
CONDITIONS = (
    ".rate_per_s",
    ".sustained_per_s",
    ".store.ms_per_operation",
    "_with_ms",
    "_without_ms",
)
"""Ends of the names of figures that a table of their own has."""


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    """Show both parts, what was found for them, the headline, and runs that do not count."""
    batches, graphs = of_batches(records), of_graphs(records)
    if batches and plan.batches is not None:
        title = f"paper: ms, {plan.batches.batches} batches, {plan.batches.repeats} repeats"
        counted = with_bounds(batches)
        first = "query, rate and system"
        console.print(systems_table(title, first, COLUMNS, SYSTEMS, counted, figures))
        show_legend(console, LEGEND)
        for record in counted:
            if is_behind(record):
                where = f"{record.cell.words}: {record.system}, repeat {record.repeat + 1}"
                console.print(f"fell behind: {where}", soft_wrap=True)
    if graphs and plan.graphs is not None:
        chosen = plan.graphs.protocols
        title = f"paper, protocols on {chosen.log}: latency in ms, {chosen.repeats} repeats"
        first, columns = "query, interval, protocol", protocols.tables.COLUMNS
        console.print(systems_table(title, first, columns, chosen.protocols, graphs, figures))
    for query in uncalibrated_queries(plan.batches, of_batches(records, "calibration")):
        console.print(f"in no headline: {on_measured_store(query)}", soft_wrap=True)
    conditions = [figure for figure in figures if figure.name.endswith(CONDITIONS)]
    show_figures(console, "paper, conditions and recovery", conditions)
    show_summary(console, "paper", figures)
    show_not_counted(console, [*with_bounds(batches), *graphs])
    show_short_warm_ups(console, with_bounds(batches))
    show_left_out(console, plan.left_out)


def draw(plan: Plan, records: Sequence[Record], figures: Sequence[Figure], path: Path) -> None:
    """The time of every batch and how batch times are spread, a row for each cell; then how the
    latency of the protocols is."""
    batches, graphs = with_bounds(of_batches(records)), of_graphs(records)
    cells = ordered(record.cell for record in batches)
    queries = ordered(record.cell.query for record in graphs)
    names = [*SYSTEMS, *(plan.graphs.protocols.protocols if plan.graphs and graphs else ())]
    rows = max(1, len(cells) + len(queries))
    size = (10.0, 0.5 + 2.6 * rows)
    with picture(path, "paper", names, (rows, 2), size, 0.3) as (axes, colours):
        for place, cell in enumerate(cells):
            counted = [r for r in batches if r.cell == cell and r.is_counted]
            left, right = axes[place]
            over_batches(left, cell.words, counted, [r.took_ms for r in counted], colours)
            spread(right, "time of micro-batches", [by_batch(r) for r in counted], colours)
        for place, query in enumerate(queries, len(cells)):
            mine = [r for r in graphs if r.cell.query == query and r.is_counted]
            for axis, end in zip(axes[place], ends(mine), strict=False):
                spread(axis, end.words, [r.run for r in mine if r.cell == end], colours)


def by_batch(record: BatchRecord) -> Run:
    """The run with its batch times in place of its latencies, to be drawn."""
    return msgspec.structs.replace(record.run, curve=curve(np.array(record.took_ms)))


def ends(records: Sequence[GraphRecord]) -> list[protocols.cells.Cell]:
    """The cells with the longest and the shortest interval."""
    cells = sorted({record.cell for record in records}, key=lambda cell: -cell.interval_ms)
    return cells[:1] + cells[-1:] if len(cells) > 1 else cells
