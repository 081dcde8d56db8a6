"""Columns, sentences and picture of the prefetch suite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from penstock_lab.experiment.figures import Figure, ordered
from penstock_lab.experiment.plot import frame, picture, spread
from penstock_lab.experiment.table import (
    Column,
    Figures,
    show_legend,
    show_not_counted,
    show_summary,
    systems_table,
    with_range,
)
from penstock_lab.suites.prefetch import adaptation
from penstock_lab.suites.prefetch.cells import Cell, Plan, Workload
from penstock_lab.suites.prefetch.figures import P999_GOAL, best_ratios, counted, judged, p999
from penstock_lab.suites.prefetch.modes import ASYNCIO, ASYNCIO_OF, OURS
from penstock_lab.suites.prefetch.records import Record

RANGE_WIDTH = len("(1234-5678)")
ROW_INCHES = 2.4
READ_SHARE_NEEDED = 0.75
"""Of a row's processor time, at a load of 0.7: so much must reads cost for a ratio of 2."""


def percent(key: str) -> Column:
    """A column of shares, in percent."""

    def text(by_name: Figures, cell: Cell, system: str) -> str:
        figure = by_name.get(f"{cell.name}.{system}.{key}")
        return "-" if figure is None else f"{figure.value * 100:.1f}"

    return Column(key.partition("_")[0], text)


COLUMNS = (
    Column("p50", with_range("p50_ms"), True, RANGE_WIDTH),
    Column("p99", with_range("p99_ms"), True, RANGE_WIDTH),
    Column("p99.9", with_range("p999_ms"), True, RANGE_WIDTH),
    percent("hit_ratio"),
    percent("unused_ratio"),
    percent("hint_share"),
)
LEGEND = (
    "ms from an input row's intended send to its batch's marker, medians of the repeats, in "
    "brackets their range; in percent: hit, reads of state that the cache answered; unused, "
    "prefetched entries that nobody read; hint, bytes of hints over bytes of the shuffle"
)


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    """Latencies at the rates, throughput of backlogs, who fell behind, the headline."""
    compared = [record for record in records if record.kind == "compared"]
    backlogs = [record for record in records if record.kind == "backlog"]
    title = f"prefetch: {plan.repeats} repeats"
    console.print(systems_table(title, "cell and mode", COLUMNS, plan.modes, compared, figures))
    show_legend(console, LEGEND)
    for figure in figures:
        if figure.name.endswith((".throughput", ".state_over_budget")):
            places = 0 if figure.unit == "rows/s" else 1
            console.print(f"{figure.name}: {figure.value:,.{places}f} {figure.unit}")
    for workload in plan.workloads:
        sentence = asyncio_cache(backlogs, workload)
        if sentence:
            console.print(sentence)
    for sentence in (*behind(compared), *short(plan, compared)):
        console.print(sentence, style="yellow", soft_wrap=True)
    for sentence in adaptation.sentences([r for r in records if r.kind == "adaptation"]):
        console.print(f"adaptation: {sentence}", soft_wrap=True)
    show_summary(console, "prefetch", figures)
    for sentence in missed(compared, figures):
        console.print(sentence, style="yellow", soft_wrap=True)
    show_not_counted(console, [record for record in records if not record.is_bound])
    for sentence in plan.left_out:
        console.print(f"not in a quick run: {sentence}", soft_wrap=True)


def missed(compared: Sequence[Record], figures: Sequence[Figure]) -> list[str]:
    """Ratios of p99.9 below their goal, each explained: prefetching can hide a row's reads."""
    by_name = {figure.name: figure.value for figure in figures}
    lines = []
    for ratio in best_ratios(judged(counted(compared), is_lookup=False), p999):
        read_us, cpu_us, our_read_us, our_cpu_us = (
            by_name.get(f"{ratio.cell.name}.{system}.{key}")
            for system in (ASYNCIO, OURS)
            for key in ("read_us_per_row", "cpu_us_per_row")
        )
        if ratio.value < P999_GOAL and read_us is not None and cpu_us:
            ours = ""
            if our_read_us is not None and our_cpu_us is not None:
                ours = f"; {OURS}'s cost {our_read_us:.1f} us, and a row {our_cpu_us:.1f} us"
            lines.append(
                f"{ratio.cell.name}: p99.9 ratio {ratio.value:.2f}. {ASYNCIO}'s reads cost "
                f"{read_us:.1f} us of a row, {read_us / cpu_us:.2f} of its processor time of "
                f"{cpu_us:.1f} us{ours}; a ratio of {P999_GOAL:g} needs {READ_SHARE_NEEDED:g} and "
                f"no more processor time than {ASYNCIO}'s"
            )
    return lines


def behind(compared: Sequence[Record]) -> list[str]:
    """Every run that fell behind its rate, by name."""
    return [
        f"falls behind: {record.cell.words}: {record.system}, repeat {record.repeat + 1}; its "
        "latencies are a lower bound"
        for record in counted(compared)
        if record.filled_run.is_behind
    ]


def short(plan: Plan, compared: Sequence[Record]) -> list[str]:
    """Runs with too few batches for their p99.9, by name."""
    lines = []
    for record in counted(compared):
        batches = sum(span.rows > 0 for span in record.filled_run.measured)
        if batches < plan.batches_min:
            lines.append(
                f"short: {record.cell.words}: {record.system}, repeat {record.repeat + 1} has "
                f"{batches} batches, and {plan.batches_min} are needed"
            )
    return lines


def draw(plan: Plan, records: Sequence[Record], figures: Sequence[Figure], path: Path) -> None:
    """Draw how latency is spread at every cell, then moves of the controller with misses."""
    compared = counted([record for record in records if record.kind == "compared"])
    moves = [record for record in records if record.kind == "adaptation" and record.is_right]
    cells = ordered(record.cell for record in compared)
    across = 2
    rows = max(-(-len(cells) // across) + bool(moves), 1)
    systems = ordered((*(record.system for record in compared), OURS))
    size = (11.0, 0.8 + ROW_INCHES * rows)
    title = "prefetch: input rows, intended send to visible"
    with picture(path, title, systems, (rows, across), size, 0.35) as (axes, colours):
        for place in range((rows - bool(moves)) * across):
            axis = axes[place // across][place % across]
            if place >= len(cells):
                axis.set_axis_off()
                continue
            here = [record.run for record in compared if record.cell == cells[place]]
            spread(axis, cells[place].words, here, colours)
        if moves:
            adaptation.draw_panels(axes[-1], moves, colours[OURS])
            runs_here = [record.run for record in moves]
            frame(axes[-1][0], "hinted from, earliest", runs_here, "batch", "candidate")
            frame(axes[-1][1], "reads that missed the cache", runs_here, "batch", "of 1")


def asyncio_cache(backlogs: Sequence[Record], workload: Workload) -> str:
    """The mode that stood for `asyncio` at a workload, in words; empty if it was not run."""
    mine = [r for r in backlogs if r.cell.workload == workload and r.system in ASYNCIO_OF]
    if not mine:
        return ""
    best = max(mine, key=lambda record: record.filled_run.throughput or 0.0)
    is_only = len({record.system for record in mine}) == 1
    rest = ", the only one of its two caches that was run" if is_only else ""
    return f"{workload.name}: {ASYNCIO} is {best.system}{rest}"
