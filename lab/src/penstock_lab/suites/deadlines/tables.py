"""Tables of the deadlines suite, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from penstock_lab.experiment.figures import Figure, ordered
from penstock_lab.experiment.plot import over_time, picture, spread
from penstock_lab.experiment.table import (
    Column,
    Figures,
    bare_table,
    show_left_out,
    show_legend,
    show_not_counted,
    show_summary,
    systems_table,
    value,
    with_range,
)
from penstock_lab.suites.deadlines.cells import BURST_S, SHOCKS, Cell, Plan
from penstock_lab.suites.deadlines.figures import UNASKED
from penstock_lab.suites.deadlines.profile import profile
from penstock_lab.suites.deadlines.profile_tables import show_profile
from penstock_lab.suites.deadlines.rates import rate_reasons
from penstock_lab.suites.deadlines.record import Record
from penstock_lab.suites.deadlines.shock_figures import NOT_BACK
from penstock_lab.suites.deadlines.singles import singles

SHOCK_NAMES = tuple(f"{shock}." for shock in SHOCKS)
BURST_WORDS = (
    "burst: ten times the rate for 5 s; back_s: from its end to the last batch over the deadline, "
    "or over the longest of the calm before, if that was more; * not back by the end of the run"
)
SHOCK_WORDS = (
    BURST_WORDS,
    "backlog: a million rows before the first batch of one query; back_s: from its start",
    "beside: a query with a deadline of 1 s beside one with batches of 10 s",
)
ROW_INCHES = 2.6


def percent(figures_by_name: Figures, cell: Cell, mode: str) -> str:
    figure = figures_by_name.get(f"{cell.name}.{mode}.miss_ratio")
    return "-" if figure is None else f"{figure.value:.1%}"


COLUMNS = (
    Column("p50", value("p50_ms")),
    Column("p95", with_range("p95_ms"), is_wrapped=True, min_width=len("(1234-5678)")),
    Column("mean", value("mean_ms")),
    Column("late", percent),
    Column("rows/s", value("throughput")),
    Column("us/row", value("cpu_us_per_row")),
    Column("result\np95", value("result_p95_ms")),
    Column("batch\nmax", value("batch_max_mean_ms")),
)
LEGEND = (
    "ms from an input row's intended send to its batch's marker, medians of the repeats, in "
    "brackets their range; late: rows after their deadline; rows/s: of batch time; us/row: "
    "processor time of driver and server; result: the same of rows written; batch max: longest "
    "latency of a batch, in the mean"
)


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    """Latencies of every query and mode, where batch time goes, rates that hold, shocks, the
    headline, what is left."""
    compared = singles(plan, [record for record in records if record.kind == "compared"])
    title, first = f"deadlines: {plan.repeats} repeats", "query and mode"
    console.print(systems_table(title, first, COLUMNS, plan.modes, compared, figures, heads))
    show_legend(console, LEGEND)
    show_profile(console, profile(plan, records))
    for figure in figures:
        if figure.name.endswith(".sustained_per_s"):
            console.print(figure_line(figure), soft_wrap=True)
    for sentence in rate_reasons(plan, records):
        console.print(sentence, style="dim", soft_wrap=True)
    shocks = [figure for figure in figures if figure.name.startswith(SHOCK_NAMES)]
    if shocks:
        console.print(shocks_table(plan, shocks))
        for sentence in SHOCK_WORDS:
            console.print(sentence, style="dim", soft_wrap=True)
        console.print()
    show_summary(console, "deadlines", figures)
    for figure in figures:
        if figure.name == f"admission.{UNASKED}":
            words = f"{figure.name}: {figure.value:.3f}, {figure.meaning}"
            console.print(words, style="dim", soft_wrap=True)
    show_not_counted(console, [record for record in records if record.kind != "sustain"])
    show_left_out(console, plan.left_out)


def heads(cell: Cell) -> list[str]:
    """The query above the deadline, so that 80 columns hold all of it."""
    return [cell.query, f" {cell.deadline_s:g} s, {cell.traffic.replace('_', ' ')}"]


def shocks_table(plan: Plan, shocks: Sequence[Figure]) -> Table:
    """A row for each figure, a column for each mode; * where it was not back by the end."""
    table = bare_table(f"shocks, with a deadline of {plan.longest_s:g} s")
    table.add_column("figure", no_wrap=True)
    modes = ordered(mode for _, mode in plan.shock_runs)
    for mode in modes:
        table.add_column(mode, justify="right", no_wrap=True)
    texts: dict[str, dict[str, str]] = {}
    for figure in shocks:
        shock, mode, key = figure.name.split(".")
        star = "*" if NOT_BACK in str(figure) else ""
        texts.setdefault(f"{shock}.{key}", {})[mode] = f"{figure.value:,.{figure.places}f}{star}"
    for name, by_mode in texts.items():
        table.add_row(name, *(by_mode.get(mode, "-") for mode in modes))
    return table


def figure_line(figure: Figure) -> str:
    return f"{figure.name}: {figure.value:,.0f} {figure.unit}"


def draw(plan: Plan, records: Sequence[Record], figures: Sequence[Figure], path: Path) -> None:
    """Draw how latency of input rows is spread, by query and deadline, then over the burst."""
    compared = singles(plan, [record for record in records if record.kind == "compared"])
    bursts = [record for record in records if record.kind == "burst" and record.is_right]
    rows = [(deadline_s, traffic) for traffic in plan.traffics for deadline_s in plan.deadlines_s]
    height = len(rows) + bool(bursts)
    across = len(plan.queries)
    size = (4.4 * across, 0.8 + ROW_INCHES * height)
    title = "deadlines: input rows, intended send to visible"
    with picture(path, title, plan.modes, (height, across), size, 0.35) as (axes, colours):
        for row, (deadline_s, traffic) in enumerate(rows):
            for column, query in enumerate(plan.queries):
                cell, axis = Cell(query, deadline_s, traffic), axes[row][column]
                counted = [s.run for s in compared if s.cell == cell and s.is_counted]
                spread(axis, cell.words, counted, colours)
                axis.axvline(deadline_s * 1000, color="0.4", linewidth=0.9, linestyle="--")
                axis.set_ylabel("share of rows", fontsize=8)
        for column, query in enumerate(plan.queries if bursts else ()):
            here = [r.queries[query].run for r in bursts if query in r.queries]
            axis = axes[-1][column]
            over_time(axis, f"{query}: ten times the rate for 5 s", here, colours, plan.warm_up_s)
            burst_s = plan.warm_up_s + plan.measured_s(plan.longest_s)
            axis.axvspan(burst_s, burst_s + BURST_S, color="#ffe3d8", linewidth=0)
            axis.axhline(plan.longest_s * 1000, color="0.4", linewidth=0.9, linestyle="--")
