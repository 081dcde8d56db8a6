"""`penstock bench sustain`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from penstock_lab.cli.bench_options import FOLDER, JSON, QUICK, place, told
from penstock_lab.processes import end_on_sigterm


@click.command()
@QUICK
@JSON
@click.option("--query", "queries", multiple=True, help="Which; may be repeated.  [q1, q18]")
@click.option("--system", "chosen", multiple=True, help="Which; may be repeated.")
@click.option("--rate", type=click.IntRange(min=1), help="The highest rate to try.")
@click.option("--store", default="local", help="Checkpoints on local, remote20 or remote80.")
@FOLDER
def sustain(
    quick: bool,
    json_file: Path | None,
    queries: tuple[str, ...],
    chosen: tuple[str, ...],
    rate: int | None,
    store: str,
    folder: Path | None,
) -> None:
    from penstock_lab.experiment.outlet import Outlet
    from penstock_lab.suites import sustain as suite

    end_on_sigterm()
    search = suite.search_of(queries, chosen, quick=quick, rate_max=rate, store=store)
    console = Console(highlight=False)
    with told(console, suite.steps(search)) as (tell, done):
        suite.run(search, place(folder), tell, Outlet(console, json_file, done=done))
