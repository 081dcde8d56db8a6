"""Tables of the floor suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rich.console import Console
from rich.table import Table

from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.table import bare_table, show_figures
from penstock_lab.measure.mechanisms import OURS
from penstock_lab.suites.floor.cells import SYSTEMS, Size
from penstock_lab.suites.floor.figures import phases, runs_of, step_medians
from penstock_lab.suites.floor.runs import Record


def show(
    console: Console, size: Size, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    shown = [figure for figure in figures if ".step." not in figure.name]
    show_figures(console, f"floor, medians of {size.repeats} repeats", shown)
    if size.has_floor:
        console.print(phase_table(records))
    for query in size.queries:
        ours = list(runs_of(query, OURS, records).values())
        if ours:
            console.print(ledger_table(query, ours))


def phase_table(records: Sequence[Record]) -> Table:
    table = bare_table("where a batch's time goes, ms (medians)")
    table.add_column("phase")
    for system in SYSTEMS:
        table.add_column(system, justify="right")
    for phase, by_system in phases(records).items():
        table.add_row(phase, *(f"{by_system.get(system, 0):,.0f}" for system in SYSTEMS))
    return table


def ledger_table(query: str, runs: Sequence[Mapping[str, Any]]) -> Table:
    """Medians of the ledgers of our batches: on the stream's thread, and within tasks."""
    table = bare_table(f"the ledger of our batch, {query} (medians)")
    for head, unit in ("on the stream's thread", "ms"), ("in tasks, summed", "ms"), ("counted", ""):
        table.add_column(head)
        table.add_column(unit, justify="right")
    columns = [step_medians(runs, part) for part in ("wall_ms", "task_ms", "counters")]
    for steps in zip_longest(*columns, fillvalue=None):
        table.add_row(
            *(text for step in steps for text in (("", "") if step is None else _shown(*step)))
        )
    return table


def _shown(step: str, value: float) -> tuple[str, str]:
    return step, f"{value:,.1f}" if value < 10 else f"{value:,.0f}"
