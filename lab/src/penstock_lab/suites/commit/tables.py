"""Tables of the commit suite, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_lab.experiment.figures import Figure, ordered
from penstock_lab.experiment.plot import over_batches, picture, spread
from penstock_lab.experiment.query_sets import key_of
from penstock_lab.experiment.table import (
    Column,
    bare_table,
    ranged,
    show_left_out,
    show_legend,
    show_losses,
    show_not_counted,
    show_short_warm_ups,
    show_summary,
    systems_table,
    value,
    with_range,
)
from penstock_lab.suites.commit.ablation import pairs, steps_at, words_of
from penstock_lab.suites.commit.cells import Plan
from penstock_lab.suites.commit.figures import OURS
from penstock_lab.suites.commit.runs import Record

RANGE_WIDTH = len("(1234-5678)")
ROWS_MAX = 8
"""From so many cells on, two of them share a row of the picture."""


COLUMNS = (
    Column("batch\np50", value("batch_p50_ms")),
    Column("batch\np99", with_range("batch_p99_ms"), True, RANGE_WIDTH),
    Column("seen\np50", value("event_p50_ms")),
    Column("seen\np99", with_range("event_p99_ms"), True, RANGE_WIDTH),
    Column("behind", value("behind_batches")),
    Column("MB", value("rss_mb")),
)
LEGEND = (
    "batch: Spark's time of a micro-batch; seen: from the intended send to a reader outside; "
    "medians of the repeats, in brackets their range; behind: batches that the checkpoint location "
    "did not have at the end; MB: the JVM's most; runs: those that count"
)


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    """Show times, what each step gives, steps of the commit, the headline, what survives which
    loss, runs that do not count and what is left."""
    compared = [record for record in records if record.kind == "compared"]
    title, systems = f"commit: ms, {plan.repeats} repeats", plan.systems

    def heads(cell: object) -> list[str]:
        query, _, where = str(getattr(cell, "name", "")).partition(".")
        return [query, f" {where}"]

    first = "cell and system"
    console.print(systems_table(title, first, COLUMNS, systems, compared, figures, heads))
    show_legend(console, LEGEND)
    if any(".step." in figure.name for figure in figures):
        console.print(ablation_table(compared, figures))
        console.print()
    if any(record.steps for record in compared):
        console.print(steps_table([record for record in compared if record.steps]))
    show_summary(console, "commit", figures)
    show_losses(console, systems)
    for figure in figures:
        if figure.name.endswith(".sustained_per_s"):
            console.print(f"{figure.name}: {figure.value:,.0f}: {figure.meaning}", soft_wrap=True)
    show_not_counted(console, [record for record in records if record.kind != "sustain"])
    for why in missing(plan, records):
        console.print(f"no figure: {why}", soft_wrap=True)
    show_short_warm_ups(console, [record for record in records if record.kind != "sustain"])
    show_left_out(console, plan.left_out)


def steps_table(records: Sequence[Record]) -> Table:
    """Mean of every step of a commit that follows behind, by system and store."""
    table = bare_table("steps of a commit: ms in the mean (at most)")
    table.add_column("step", no_wrap=True)
    groups: dict[str, list[Record]] = {}
    for record in records:
        changelog = "on" if record.cell.has_changelog else "off"
        groups.setdefault(f"{record.system}\n{record.cell.store}.{changelog}", []).append(record)
    for name in groups:
        table.add_column(name, justify="right")
    for step in sorted({step for record in records for step in record.steps}):
        texts = []
        for group in groups.values():
            mine = [record.steps[step] for record in group if step in record.steps]
            count, total = (sum(part[key] for part in mine) for key in ("count", "total_ms"))
            most = max((part["max_ms"] for part in mine), default=0.0)
            texts.append(f"{total / count:,.0f} ({most:,.0f})" if count else "")
        table.add_row(step, *texts)
    return table


def ablation_table(compared: Sequence[Record], figures: Sequence[Figure]) -> Table:
    """Gains of each step from Spark's own commit to ours: the one before over it."""
    by_name = {figure.name: figure for figure in figures}
    table = bare_table("steps of the ablation: the one before over it")
    table.add_column("cell and step", no_wrap=True)
    for name in ("batch p50", "seen p99"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what it changes")
    for cell, here in steps_at(compared).items():
        steps = pairs(here)
        if steps:
            table.add_row(Text(cell.base_name, "bold"))
        for before, system in steps:
            name = f"{cell.base_name}.step.{system}"
            batch, seen = (
                ranged(by_name.get(f"{name}.{key}"), places=2)
                for key in ("batch_p50_ratio", "event_p99_ratio")
            )
            table.add_row(f"  {system}", batch, seen, words_of(before, system))
    return table


def missing(plan: Plan, records: Sequence[Record]) -> list[str]:
    """Reasons why a figure that was to be there is not."""
    least = plan.growth.batches_min if plan.growth else 0
    return [
        f"growth of {record.cell.words}: {len(record.took_ms)} batches in the time, and {least} "
        "are needed"
        for record in records
        if (record.kind, record.system, record.is_counted) == ("growth", OURS, True)
        and len(record.took_ms) < least
    ]


def panel_of(record: Record) -> str:
    """The title of its panel: long runs share one, with a changelog or without."""
    if record.kind == "compared":
        return record.cell.name
    return f"{key_of(record.cell.query)}, {record.cell.store}, long run"


def draw(plan: Plan, records: Sequence[Record], figures: Sequence[Figure], path: Path) -> None:
    """Batch time over batch number and how latency is spread, of runs that count."""
    shown = [record for record in records if record.kind != "sustain"]
    panels = ordered(panel_of(record) for record in shown)
    across = 1 if len(panels) <= ROWS_MAX else 2
    rows = -(-len(panels) // across)
    title, size = "commit: time of micro-batches", (10.0 * across, 0.5 + 2.4 * rows)
    with picture(path, title, plan.systems, (rows, 2 * across), size, 0.3) as (axes, colours):
        for place in range(rows * across):
            left, right = axes[place // across][2 * (place % across) :][:2]
            if place >= len(panels):
                left.set_axis_off()
                right.set_axis_off()
                continue
            counted = [r for r in shown if panel_of(r) == panels[place] and r.is_counted]
            took = [[batch.took_ms for batch in r.batches if batch.rows] for r in counted]
            over_batches(left, panels[place], counted, took, colours)
            spread(right, "latency of visible results", [r.run for r in counted], colours)
