"""The suite's tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_lab.experiment.report import Figure, bare_table, figures_table
from penstock_lab.suites.log.plan import SIZES, WRITERS, Plan


def show(console: Console, plan: Plan, figures: Sequence[Figure]) -> None:
    """Appends of both backends, then everything else with its goal."""
    console.print(appends_table(plan, figures))
    console.print(
        Text(
            "writers wait for each answer: in the embedded log synced to disk, in JetStream held "
            "by two of three servers, which sync when their own setting says; medians of the "
            "repeats, in brackets their range",
            "dim",
        ),
        soft_wrap=True,
    )
    console.print()
    rest = [one for one in figures if ".append_" not in one.name]
    console.print(figures_table("log, figures", rest))
    for figure in rest:
        console.print(f"{figure.name}: {figure.what}", style="dim", soft_wrap=True)


def appends_table(plan: Plan, figures: Sequence[Figure]) -> Table:
    by_name = {one.name: one for one in figures}
    table = bare_table(f"log: durable appends, {plan.repeats} repeats of {plan.append_s:g} s")
    table.add_column("backend, size, writers", no_wrap=True)
    for name in ("per s (repeats)", "ms p50", "ms p99 (repeats)"):
        table.add_column(name, justify="right", no_wrap=True)
    for backend in plan.backends:
        table.add_row(Text(backend, "bold"))
        for size in SIZES:
            for writers in WRITERS:
                name = f"{backend}.{size}.w{writers}"
                table.add_row(
                    f"  {size}, {writers}",
                    _ranged(by_name.get(f"{name}.append_per_s"), 0),
                    _value(by_name.get(f"{name}.append_ms_p50")),
                    _ranged(by_name.get(f"{name}.append_ms_p99"), 1),
                )
    return table


def _value(figure: Figure | None) -> str:
    return "-" if figure is None else f"{figure.value:.2f}"


def _ranged(figure: Figure | None, places: int) -> str:
    if figure is None:
        return "-"
    low, high = (f"{one:,.{places}f}" for one in (min(figure.repeats), max(figure.repeats)))
    return f"{figure.value:,.{places}f} ({low}-{high})"
