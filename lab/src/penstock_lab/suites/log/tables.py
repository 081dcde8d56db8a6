"""Tables of the log suite, and its picture."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.plot import bars, picture
from penstock_lab.experiment.table import bare_table, figures_table, show_legend
from penstock_lab.measure.log_sizes import SIZES, WRITERS
from penstock_lab.suites.log.cells import Plan
from penstock_lab.suites.log.gateway import gateway_table
from penstock_lab.suites.log.runs import Record

PANELS = (("append_per_s", "appends per second"), ("append_ms_p99", "p99 of one append, ms"))
LEGEND = (
    "writers wait for each answer: in the embedded log synced to disk, in JetStream held by two of "
    "three servers, which sync when their own setting says; medians of the repeats, in brackets "
    "their range"
)


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    """Appends of both backends, then everything else with its goal."""
    console.print(appends_table(plan, figures))
    show_legend(console, LEGEND)
    console.print(gateway_table(figures))
    rest = [figure for figure in figures if ".append_" not in figure.name]
    console.print(figures_table("log, figures", rest))
    for figure in rest:
        console.print(f"{figure.name}: {figure.meaning}", style="dim", soft_wrap=True)


def appends_table(plan: Plan, figures: Sequence[Figure]) -> Table:
    by_name = {figure.name: figure for figure in figures}
    table = bare_table(f"log: durable appends, {plan.repeats} repeats of {plan.append_s:g} s")
    table.add_column("backend, size, writers", no_wrap=True)
    for name in ("per s (repeats)", "ms p50", "ms p99 (repeats)"):
        table.add_column(name, justify="right", no_wrap=True)

    def text(name: str, places: int, *, with_range: bool = True) -> str:
        figure = by_name.get(name)
        if figure is None:
            return "-"
        low, high = (f"{bound:,.{places}f}" for bound in (min(figure.repeats), max(figure.repeats)))
        return f"{figure.value:,.{places}f}" + (f" ({low}-{high})" if with_range else "")

    for backend in plan.backends:
        table.add_row(Text(backend, "bold"))
        for size, writers in itertools.product(SIZES, WRITERS):
            key = f"{backend}.{size}.w{writers}.append"
            table.add_row(
                f"  {size}, {writers}",
                text(f"{key}_per_s", 0),
                text(f"{key}_ms_p50", 2, with_range=False),
                text(f"{key}_ms_p99", 1),
            )
    return table


def draw(plan: Plan, records: Sequence[Record], figures: Sequence[Figure], path: Path) -> None:
    """Appends per second and their time, a group of bars per size, a colour per backend."""
    by_name = {figure.name: figure for figure in figures}
    groups = [f"{size}.w{writers}" for writers in WRITERS for size in SIZES]
    with picture(path, "", plan.backends, (1, len(PANELS)), (11.0, 3.6), 0.0) as (axes, colours):
        for axis, (key, words) in zip(axes[0], PANELS, strict=True):
            series = {
                backend: [by_name.get(f"{backend}.{group}.{key}") for group in groups]
                for backend in plan.backends
            }
            bars(axis, words, groups, series, colours)
        axes[0][0].legend(frameon=False, fontsize=8)
