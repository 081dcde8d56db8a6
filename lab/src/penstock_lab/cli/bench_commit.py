"""`penstock bench commit`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from penstock_lab.cli.bench_options import FOLDER, JSON, QUICK, place, told
from penstock_lab.processes import end_on_sigterm


@click.command()
@QUICK
@JSON
@click.option("--plot", "plot_file", type=click.Path(path_type=Path), help="Draw the batches here.")
@click.option("--query", "queries", multiple=True, help="Only this one; may be repeated.")
@click.option("--rate", type=click.IntRange(min=1), help="Events per second.  [2500]")
@click.option("--store", "stores", multiple=True, help="Only this one; may be repeated.")
@click.option("--system", "chosen", multiple=True, help="Only this one; may be repeated.")
@FOLDER
def commit(
    quick: bool,
    json_file: Path | None,
    plot_file: Path | None,
    queries: tuple[str, ...],
    rate: int | None,
    stores: tuple[str, ...],
    chosen: tuple[str, ...],
    folder: Path | None,
) -> None:
    from penstock_lab.experiment.outlet import Outlet
    from penstock_lab.suites.commit import suite
    from penstock_lab.suites.commit.plan import plan_of

    end_on_sigterm()
    plan = plan_of(quick=quick, queries=queries, stores=stores, chosen=chosen, rate=rate)
    console = Console(highlight=False)
    console.print(f"{plan.steps} runs, about {plan.minutes:.0f} minutes on quiet cores")
    with told(console, plan.steps) as (tell, done):
        is_right = suite.run(plan, place(folder), tell, Outlet(console, json_file, plot_file, done))
    if not is_right:
        raise SystemExit(1)
