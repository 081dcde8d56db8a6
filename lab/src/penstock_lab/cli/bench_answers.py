"""`penstock bench answers`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from penstock_lab.cli.bench_options import FOLDER, JSON, REDIS, place, told
from penstock_lab.processes import end_on_sigterm


@click.command()
@click.option("--quick", is_flag=True, help="130,000 events in place of 1,000,000.")
@JSON
@click.option("--query", "queries", multiple=True, help="Only this one; may be repeated.")
@REDIS
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    envvar="PENSTOCK_TEST_DATA",
    help="The folder that holds lightsaber/, for the replay.  [PENSTOCK_TEST_DATA]",
)
@FOLDER
def answers(
    quick: bool,
    json_file: Path | None,
    queries: tuple[str, ...],
    redis: str,
    data: Path | None,
    folder: Path | None,
) -> None:
    from penstock_lab.experiment.outlet import Outlet
    from penstock_lab.suites.answers import suite
    from penstock_lab.workloads.replay import samples_folder

    end_on_sigterm()
    samples = samples_folder(data, Path.cwd())
    plan = suite.plan_of(queries, quick=quick, redis=redis, samples=samples)
    console = Console(highlight=False)
    with told(console, suite.steps(plan)) as (tell, done):
        is_right = suite.run(plan, place(folder), tell, Outlet(console, json_file, done=done))
    if not is_right:
        raise SystemExit(1)
