"""`penstock bench log`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from rich.console import Console

from penstock_lab.cli.bench_options import FOLDER, JSON, QUICK, place, told
from penstock_lab.processes import end_on_sigterm


@click.command()
@QUICK
@JSON
@click.option("--plot", "plot_file", type=click.Path(path_type=Path), help="Draw appends here.")
@click.option(
    "--backend",
    "backends",
    multiple=True,
    type=click.Choice(["embedded", "jetstream"]),
    help="Only this one; may be repeated.",
)
@FOLDER
def log(
    quick: bool,
    json_file: Path | None,
    plot_file: Path | None,
    backends: tuple[str, ...],
    folder: Path | None,
) -> None:
    from penstock_lab.experiment.outlet import Outlet
    from penstock_lab.suites.log import suite
    from penstock_lab.suites.log.plan import FULL
    from penstock_lab.suites.log.plan import QUICK as SHORT

    end_on_sigterm()
    plan = SHORT if quick else FULL
    if backends:
        plan = msgspec.structs.replace(plan, backends=backends)
    console = Console(highlight=False)
    with told(console, plan.steps) as (tell, done):
        suite.run(plan, place(folder), tell, Outlet(console, json_file, plot_file, done))
