"""The suite's tables for people: protocols at every cell, and what sums them up."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_lab.experiment.report import Figure, bare_table, figures_table
from penstock_lab.suites.protocols.figures import LEVEL, ordered
from penstock_lab.suites.protocols.plan import Plan
from penstock_lab.suites.protocols.record import Measured


def show(console: Console, plan: Plan, runs: Sequence[Measured], figures: Sequence[Figure]) -> None:
    """Latencies, then the headline, then every run that does not count and why."""
    console.print(latency_table(plan, runs, figures))
    rates = ", ".join(f"{query.upper()} {rate:,}" for query, rate in plan.rates.items())
    console.print(
        Text(
            f"events/s: {rates}; medians of the repeats, in brackets their range; held: commits "
            "per second of the slowest task over those that the interval asks for; runs: those "
            "that count",
            "dim",
        ),
        soft_wrap=True,
    )
    console.print()
    rest = [one for one in figures if one.goal is not None or one.name.startswith("headline.")]
    console.print(figures_table("protocols, figures", rest))
    for figure in rest:
        console.print(f"{figure.name}: {figure.what}", style="dim", soft_wrap=True)
    for one in runs:
        if not one.is_counted:
            where = f"{one.cell.words}: {one.protocol}, repeat {one.repeat + 1}"
            console.print(
                Text(f"does not count: {where}: {one.run.verdict}", "red"), soft_wrap=True
            )
            for difference in one.run.differences:
                console.print(Text(f"  {difference}"), soft_wrap=True)


def latency_table(plan: Plan, runs: Sequence[Measured], figures: Sequence[Figure]) -> Table:
    by_name = {one.name: one for one in figures}
    title = (
        f"protocols on {plan.log}: latency in ms, {plan.repeats} repeats of {plan.measure_s:g} s"
    )
    table = bare_table(title)
    table.add_column("query, interval, protocol", no_wrap=True)
    for name in ("p50 (repeats)", "p99 (repeats)", "held", "runs"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in ordered(one.cell for one in runs):
        table.add_row(Text(cell.words, "bold"))
        for place, protocol in enumerate(plan.protocols):
            name = f"{LEVEL}.{cell.name}.{protocol}"
            mine = [one for one in runs if (one.cell, one.protocol) == (cell, protocol)]
            held = by_name.get(f"{name}.commits_per_s")
            table.add_row(
                f"  {protocol}",
                ranged(by_name.get(f"{name}.p50_ms")),
                ranged(by_name.get(f"{name}.p99_ms")),
                "-" if held is None else f"{held.value * cell.interval_ms / 10:.0f} %",
                _counted(mine),
                end_section=place == len(plan.protocols) - 1,
            )
    return table


def ranged(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    if len(figure.repeats) < 2:
        return f"{figure.value:.0f}"
    return f"{figure.value:.0f} ({min(figure.repeats):.0f}-{max(figure.repeats):.0f})"


def _counted(runs: Sequence[Measured]) -> Text:
    counted = sum(one.is_counted for one in runs)
    return Text(f"{counted}/{len(runs)}", "" if counted == len(runs) else "red")
