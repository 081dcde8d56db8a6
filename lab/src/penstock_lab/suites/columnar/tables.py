"""Tables of the columnar suite."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from penstock_lab.experiment.device_plans import ways_in_words
from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.table import bare_table, show_figures
from penstock_lab.measure.window_batches import AUTO
from penstock_lab.suites.columnar.cells import Plan
from penstock_lab.suites.columnar.figures import WORKER_PARTS, auto_ways
from penstock_lab.suites.columnar.runs import Record


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    summary = [figure for figure in figures if figure.is_summary]
    show_figures(console, f"columnar, medians of {plan.repeats} repeats", summary)
    by_name = {figure.name: figure.value for figure in figures}
    table = bare_table("a batch, and its stage below the shuffle, ms (medians)")
    table.add_column("case")
    for path in plan.paths:
        table.add_column(path, justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("choice", justify="right")
    table.add_column("auto took")
    for case in plan.cases:
        times = (
            _times(by_name, f"{case.name}.{path}_ms_p50", f"{case.name}.{path}_stage_ms_p50")
            for path in plan.paths
        )
        ratios_shown = (_number(by_name.get(f"{case.name}.{key}")) for key in ("ratio", "choice"))
        taken = ways_in_words(auto_ways(records, case))
        table.add_row(case.name, *times, *ratios_shown, taken or "-")
    console.print(table)
    for sentence in unplanned(plan, records):
        console.print(Text(sentence, "yellow"), soft_wrap=True)
    parts = {part: by_name.get(f"worker.{part}_ms_p50") for part in (*WORKER_PARTS, "task")}
    if any(value is not None for value in parts.values()):
        words = ", ".join(f"{part} {_number(value)}" for part, value in parts.items())
        console.print(f"a warm worker with one row, ms (medians): {words}", soft_wrap=True)


def unplanned(plan: Plan, records: Sequence[Record]) -> list[str]:
    """A sentence on the cases whose `auto` had no plan: their choice says nothing of planning."""
    measured = [
        case for case in plan.cases if any(case.name in r.get("cases", {}) for r in records)
    ]
    names = [case.name for case in measured if not auto_ways(records, case)]
    if not names or AUTO not in plan.paths:
        return []
    return [f"{', '.join(names)}: no batch of auto was planned, so their choice is not planning's"]


def _times(by_name: dict[str, float], whole: str, stage: str) -> str:
    if whole not in by_name:
        return "-"
    return f"{by_name[whole]:,.0f} ({by_name.get(stage, 0.0):,.0f})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
