"""`penstock bench floor`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

from penstock_lab.cli.bench_options import FOLDER, JSON, QUICK, place, told
from penstock_lab.processes import end_on_sigterm


@click.command()
@QUICK
@JSON
@FOLDER
def floor(quick: bool, json_file: Path | None, folder: Path | None) -> None:
    from penstock_lab.experiment.report import show, write
    from penstock_lab.suites import floor as suite

    end_on_sigterm()
    size = suite.QUICK if quick else suite.FULL
    console = Console(highlight=False)
    with told(console, suite.steps(size)) as (tell, _):
        found, figures = suite.run(size, place(folder), tell)
    show(console, f"floor, medians of {size.repeats} repeats", figures)
    console.print(_phases_table(suite.phases(found.runs)))
    if json_file is not None:
        write(found, json_file)


def _phases_table(phases: dict[str, Any]) -> Table:
    table = Table(
        title="where a batch's time goes, ms (medians)",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    table.add_column("phase")
    for system in ("spark", "penstock"):
        table.add_column(system, justify="right")
    for phase, by_system in phases.items():
        table.add_row(phase, *(f"{by_system.get(one, 0):,.0f}" for one in ("spark", "penstock")))
    return table
