"""The suite's tables for people: cells and systems, what sums them up, and where commits go."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_lab.experiment.report import Figure, bare_table, figures_table
from penstock_lab.suites.commit.figures import OURS, ordered
from penstock_lab.suites.commit.plan import Plan
from penstock_lab.suites.commit.record import Measured

RANGE_WIDTH = len("(1234-5678)")


def show(console: Console, plan: Plan, runs: Sequence[Measured], figures: Sequence[Figure]) -> None:
    """Times, steps of the commit, the headline, what does not count and what was left out."""
    console.print(times_table(plan, runs, figures))
    console.print(
        Text(
            "batch: Spark's time of a micro-batch; seen: from the intended send to a reader "
            "outside; medians of the repeats, in brackets their range; behind: batches that the "
            "checkpoint location did not have at the end; MB: the JVM's most; runs: those that "
            "count",
            "dim",
        ),
        soft_wrap=True,
    )
    console.print()
    if any(one.steps for one in runs):
        console.print(steps_table(runs))
    rest = [one for one in figures if one.goal is not None or one.name.startswith("headline.")]
    console.print(figures_table("commit, figures", rest))
    for figure in rest:
        console.print(f"{figure.name}: {figure.what}", style="dim", soft_wrap=True)
    for figure in figures:
        if figure.name.endswith(".sustained_per_s"):
            console.print(f"{figure.name}: {figure.value:,.0f}: {figure.what}", soft_wrap=True)
    for one in runs:
        if not one.is_counted and one.kind != "sustain":
            where = f"{one.cell.words}: {one.system}, repeat {one.repeat + 1}"
            console.print(
                Text(f"does not count: {where}: {one.run.verdict}", "red"), soft_wrap=True
            )
            for difference in one.run.differences:
                console.print(Text(f"  {difference}"), soft_wrap=True)
    for why in missing(plan, runs):
        console.print(f"no figure: {why}", soft_wrap=True)
    for sentence in plan.left_out:
        console.print(f"not in a quick run: {sentence}", soft_wrap=True)


def times_table(plan: Plan, runs: Sequence[Measured], figures: Sequence[Figure]) -> Table:
    """A cell's systems below its words, so that 80 columns hold all of it."""
    by_name = {one.name: one for one in figures}
    compared = [one for one in runs if one.kind == "compared"]
    table = _table(f"commit: ms, {plan.repeats} repeats", "cell and system")
    for name in ("batch\np50", "batch\np99", "seen\np50", "seen\np99", "behind", "MB", "runs"):
        # A range goes below its value where it is narrow, and is never cut off.
        width = RANGE_WIDTH if name.endswith("p99") else None
        table.add_column(name, justify="right", no_wrap=width is None, min_width=width)
    for cell in ordered(one.cell for one in compared):
        query, where = cell.name.split(".", 1)
        table.add_row(Text(query, "bold"))
        table.add_row(Text(f" {where}", "bold"))
        here = [one for one in compared if one.cell == cell]
        names = [name for name in plan.systems if any(one.system == name for one in here)]
        for place, system in enumerate(names):
            mine = [one for one in here if one.system == system]
            key = f"{cell.name}.{system}"
            table.add_row(
                f"  {system}",
                _value(by_name.get(f"{key}.batch_p50_ms")),
                _ranged(by_name.get(f"{key}.batch_p99_ms")),
                _value(by_name.get(f"{key}.event_p50_ms")),
                _ranged(by_name.get(f"{key}.event_p99_ms")),
                _value(by_name.get(f"{key}.behind_batches")),
                _value(by_name.get(f"{key}.rss_mb")),
                _counted(mine),
                end_section=place == len(names) - 1,
            )
    return table


def steps_table(runs: Sequence[Measured]) -> Table:
    """Mean of every step of a commit that follows behind, by system and store."""
    told = [one for one in runs if one.steps and one.kind == "compared"]
    table = _table("steps of a commit: ms in the mean (at most)", "step")
    kinds = ordered((one.system, one.cell.has_changelog, one.cell.store) for one in told)
    for system, has_changelog, store in kinds:
        changelog = "on" if has_changelog else "off"
        table.add_column(f"{system}\n{store}.{changelog}", justify="right")
    for step in sorted({step for one in told for step in one.steps}):
        row = []
        for kind in kinds:
            mine = [
                one.steps[step]
                for one in told
                if (one.system, one.cell.has_changelog, one.cell.store) == kind
                and step in one.steps
            ]
            count = sum(one["count"] for one in mine)
            total = sum(one["total_ms"] for one in mine)
            most = max((one["max_ms"] for one in mine), default=0.0)
            row.append(f"{total / count:,.0f} ({most:,.0f})" if count else "")
        table.add_row(step, *row)
    return table


def missing(plan: Plan, runs: Sequence[Measured]) -> list[str]:
    """Why a figure that was to be there is not."""
    found = []
    least = plan.growth.batches_min if plan.growth else 0
    for one in runs:
        is_ours = one.kind == "growth" and one.system == OURS
        if is_ours and one.is_counted and len(one.took_ms) < least:
            found.append(
                f"growth of {one.cell.words}: {len(one.took_ms)} batches in the time, and "
                f"{least} are needed"
            )
    return found


def _table(title: str, first: str) -> Table:
    table = bare_table(title)
    table.add_column(first, no_wrap=True)
    return table


def _value(figure: Figure | None) -> str:
    return "-" if figure is None else f"{figure.value:.0f}"


def _ranged(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    if len(figure.repeats) < 2:
        return f"{figure.value:.0f}"
    return f"{figure.value:.0f} ({min(figure.repeats):.0f}-{max(figure.repeats):.0f})"


def _counted(runs: Sequence[Measured]) -> Text:
    counted = sum(one.is_counted for one in runs)
    return Text(f"{counted}/{len(runs)}", "" if counted == len(runs) else "red")
