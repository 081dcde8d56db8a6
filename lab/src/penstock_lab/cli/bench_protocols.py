"""`penstock bench protocols`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from penstock_lab.cli.bench_options import FOLDER, JSON, QUICK, place, told
from penstock_lab.processes import end_on_sigterm


@click.command()
@QUICK
@JSON
@click.option("--plot", "plot_file", type=click.Path(path_type=Path), help="Draw latencies here.")
@click.option("--query", "queries", multiple=True, help="Only this one; may be repeated.")
@click.option("--protocol", "chosen", multiple=True, help="Only this one; may be repeated.")
@click.option(
    "--interval",
    "intervals_ms",
    multiple=True,
    type=click.IntRange(min=1),
    help="Commit every so many milliseconds; may be repeated.  [100, 50, 25, 10]",
)
@click.option("--rate", type=click.IntRange(min=1), help="Events per second.")
@click.option("--log", "log", default="jetstream", show_default=True, help="Or embedded.")
@FOLDER
def protocols(
    quick: bool,
    json_file: Path | None,
    plot_file: Path | None,
    queries: tuple[str, ...],
    chosen: tuple[str, ...],
    intervals_ms: tuple[int, ...],
    rate: int | None,
    log: str,
    folder: Path | None,
) -> None:
    from penstock_lab.experiment.outlet import Outlet
    from penstock_lab.suites.protocols import suite
    from penstock_lab.suites.protocols.plan import plan_of

    end_on_sigterm()
    plan = plan_of(
        quick=quick,
        queries=queries,
        protocols=chosen,
        intervals_ms=intervals_ms,
        rate=rate,
        log=log,
    )
    console = Console(highlight=False)
    console.print(f"{plan.steps} runs, about {plan.minutes:.0f} minutes on quiet cores")
    with told(console, plan.steps) as (tell, done):
        is_right = suite.run(plan, place(folder), tell, Outlet(console, json_file, plot_file, done))
    if not is_right:
        raise SystemExit(1)
