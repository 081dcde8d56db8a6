"""The table of a suite for people: every system's latency per query, ratio and spread."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_lab.experiment.plan import Plan
from penstock_lab.experiment.record import Run
from penstock_lab.experiment.report import Figure, bare_table, figures_table
from penstock_lab.experiment.suites import key_of


def show(
    console: Console,
    plan: Plan,
    runs: Sequence[Run],
    figures: Sequence[Figure],
    skipped: Sequence[tuple[str, str, str]] = (),
) -> None:
    """Latencies, then what sums them up, then every run that does not count and why."""
    console.print(latency_table(plan, runs, figures))
    console.print(Text(_legend(plan), "dim"), soft_wrap=True)
    console.print()
    rest = [one for one in figures if one.goal is not None or one.name.startswith("headline.")]
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
    """A query's systems below its name, so that 80 columns hold all of it and none is cut off.

    The ratio is in the row of the system it compares with.
    """
    by_name = {one.name: one for one in figures}
    store = "" if plan.store == "local" else f", checkpoints on {plan.store}"
    table = bare_table(
        f"{plan.suite}: latency in ms, {plan.repeats} repeats of {plan.measure_s:g} s{store}"
    )
    table.add_column("query and system", no_wrap=True)
    for name in ("p50", "p99 (repeats)", "past", "ahead (repeats)", "runs"):
        # Where it is narrow still, a range goes below its value.
        table.add_column(name, justify="right", no_wrap="repeats" not in name)
    for query in plan.queries:
        key = key_of(query)
        table.add_row(Text(key, "bold"))
        for place, system in enumerate(plan.systems):
            mine = [run for run in runs if (run.query, run.system) == (query, system)]
            ratio = by_name.get(f"{key}.ratio_p99_vs_{system}")
            table.add_row(
                f"  {system}",
                _value(by_name.get(f"{key}.{system}.p50_ms")),
                _ranged(by_name.get(f"{key}.{system}.p99_ms"), "-", 0),
                _value(by_name.get(f"{key}.{system}.past_window_p99_ms")),
                _ranged(ratio, "", 2),
                _counted(mine),
                end_section=place == len(plan.systems) - 1,
            )
    return table


def _legend(plan: Plan) -> str:
    rates = ", ".join(f"{key_of(query)} {rate:,}" for query, rate in plan.rates.items())
    besides = f" ({rates})" if rates else ""
    return (
        f"at {plan.rate:,} events/s{besides}; past: p99 past the window's end and the watermark's "
        "delay; ahead: their p99 over ours, the middle over all pairs of runs, in brackets within "
        "each repeat; runs: those that count"
    )


def _value(figure: Figure | None) -> str:
    return "-" if figure is None else f"{figure.value:.0f}"


def _ranged(figure: Figure | None, nothing: str, places: int) -> str:
    if figure is None:
        return nothing
    value = f"{figure.value:.{places}f}"
    if len(figure.repeats) < 2:
        return value
    low, high = (f"{one:.{places}f}" for one in (min(figure.repeats), max(figure.repeats)))
    return f"{value} ({low}-{high})"


def _counted(runs: Sequence[Run]) -> Text:
    counted = sum(run.is_counted for run in runs)
    return Text(f"{counted}/{len(runs)}", "" if counted == len(runs) else "red")
