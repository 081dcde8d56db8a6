"""The table of a suite for people: every system's latency per query, ratio and spread."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.bench.plan import Plan
from penstock.bench.record import Run
from penstock.bench.report import Figure, figures_table
from penstock.bench.suites import key_of

SMALL = (".p50_ms", ".p99_ms", ".past_window_p99_ms")


def show(
    console: Console,
    plan: Plan,
    runs: Sequence[Run],
    figures: Sequence[Figure],
    skipped: Sequence[tuple[str, str, str]] = (),
) -> None:
    """Latencies, then the other figures, then every run that does not count and why."""
    console.print(latency_table(plan, runs, figures))
    rest = [one for one in figures if not one.name.endswith(SMALL)]
    console.print(figures_table(f"{plan.suite}, figures", rest))
    for run in runs:
        if not run.is_counted:
            where = f"{key_of(run.query)} on {run.system}, repeat {run.repeat + 1}"
            console.print(Text(f"does not count: {where}: {run.verdict}", "red"), soft_wrap=True)
            for difference in run.differences:
                console.print(Text(f"  {difference}"), soft_wrap=True)
    for name, query, why in skipped:
        console.print(f"not run: {key_of(query)} on {name}: {why}", soft_wrap=True)


def latency_table(plan: Plan, runs: Sequence[Run], figures: Sequence[Figure]) -> Table:
    """A row per query and system; the ratio is in the row of the system it compares with."""
    by_name = {one.name: one for one in figures}
    store = "" if plan.store == "local" else f", checkpoints on {plan.store}"
    table = Table(
        title=f"{plan.suite}: latency in ms, {plan.repeats} repeats of {plan.measure_s:g} s{store}",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    table.add_column("query", no_wrap=True)
    table.add_column("events/s", justify="right", no_wrap=True)
    table.add_column("system", no_wrap=True)
    for name in ("p50", "p99", "repeats", "past window p99", "penstock ahead", "repeats", "count"):
        table.add_column(name, justify="right", no_wrap=True)
    for query in plan.queries:
        key = key_of(query)
        for place, system in enumerate(plan.systems):
            mine = [run for run in runs if (run.query, run.system) == (query, system)]
            p99 = by_name.get(f"{key}.{system}.p99_ms")
            ratio = by_name.get(f"{key}.ratio_p99_vs_{system}")
            table.add_row(
                key if place == 0 else "",
                f"{plan.rate_of(query):,}" if place == 0 else "",
                system,
                _value(by_name.get(f"{key}.{system}.p50_ms")),
                _value(p99),
                _range(p99),
                _value(by_name.get(f"{key}.{system}.past_window_p99_ms")),
                "" if ratio is None else f"{ratio.value:.2f} x",
                "" if ratio is None else ratio.spread,
                _counted(mine),
                end_section=place == len(plan.systems) - 1,
            )
    return table


def _value(figure: Figure | None) -> str:
    return "-" if figure is None else f"{figure.value:,.0f}"


def _range(figure: Figure | None) -> str:
    if figure is None or len(figure.repeats) < 2:
        return ""
    return f"{min(figure.repeats):,.0f} to {max(figure.repeats):,.0f}"


def _counted(runs: Sequence[Run]) -> Text:
    counted = sum(run.is_counted for run in runs)
    return Text(f"{counted} of {len(runs)}", "" if counted == len(runs) else "red")
