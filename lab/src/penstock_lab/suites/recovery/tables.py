"""Table and sentences of the recovery suite."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.table import bare_table, show_summary
from penstock_lab.measure.recoveries import Recovered
from penstock_lab.percentiles import median
from penstock_lab.suites.recovery.cells import SYSTEMS, WORDS, Plan
from penstock_lab.suites.recovery.figures import times


def show(
    console: Console, plan: Plan, records: Sequence[Recovered], figures: Sequence[Figure]
) -> None:
    table = bare_table(f"recovery: ms to the first new marker, medians of {plan.repeats} repeats")
    table.add_column("killed", no_wrap=True)
    for name in plan.systems:
        table.add_column(name, justify="right")
    counted = [record for record in records if record.is_counted]
    for kill in plan.kills:
        middles = [median(times(counted, name, kill)) for name in plan.systems]
        table.add_row(WORDS[kill], *("-" if ms is None else f"{ms:,.0f}" for ms in middles))
    console.print(table)
    for name in plan.systems:
        console.print(f"{name}: {SYSTEMS[name].words}", style="dim")
    show_summary(console, "recovery", figures)
    for record in records:
        if not record.is_counted:
            which = f"{record.system}, repeat {record.repeat + 1}"
            why = record.error or f"{record.rows_different} of {record.rows_checked} rows differ"
            console.print(Text(f"does not count: {which}: {why}", "red"), soft_wrap=True)
            for difference in record.differences:
                console.print(Text(f"  {difference}"), soft_wrap=True)
