"""Table of the protocols suite, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.plot import picture, spread
from penstock_lab.experiment.table import (
    Column,
    Figures,
    show_legend,
    show_not_counted,
    show_summary,
    systems_table,
    with_range,
)
from penstock_lab.suites.protocols.cells import Cell, Plan
from penstock_lab.suites.protocols.runs import Record


def held(figures: Figures, cell: Cell, protocol: str) -> str:
    """Commits of the slowest task over those that the interval asks for."""
    figure = figures.get(f"{cell.name}.{protocol}.commits_per_s")
    return "-" if figure is None else f"{figure.value * cell.interval_ms / 10:.0f} %"


COLUMNS = (
    Column("p50 (repeats)", with_range("p50_ms")),
    Column("p99 (repeats)", with_range("p99_ms")),
    Column("held", held),
)


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    """Latencies, then the headline, then every run that does not count and why."""
    title = (
        f"protocols on {plan.log}: latency in ms, {plan.repeats} repeats of {plan.measure_s:g} s"
    )
    first = "query, interval, protocol"
    console.print(systems_table(title, first, COLUMNS, plan.protocols, records, figures))
    rates = ", ".join(f"{query.upper()} {rate:,}" for query, rate in plan.rates.items())
    show_legend(
        console,
        f"events/s: {rates}; medians of the repeats, in brackets their range; held: commits per "
        "second of the slowest task over those that the interval asks for; runs: those that count",
    )
    show_summary(console, "protocols", figures)
    show_not_counted(console, records)


def draw(plan: Plan, records: Sequence[Record], figures: Sequence[Figure], path: Path) -> None:
    """Draw the spread of latency, a panel per query and interval; only runs that count."""
    grid = (len(plan.queries), len(plan.intervals_ms))
    size = (3.6 * grid[1], 0.7 + 2.6 * grid[0])
    title = f"protocols on {plan.log}: event-time latency"
    with picture(path, title, plan.protocols, grid, size, 0.3) as (axes, colours):
        for place, cell in enumerate(plan.cells):
            counted = [r.run for r in records if r.cell == cell and r.is_counted]
            spread(axes[place // grid[1]][place % grid[1]], cell.words, counted, colours)
