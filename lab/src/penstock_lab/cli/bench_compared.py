"""The suites that compare systems: `penstock bench nexmark`, `linearroad`, `cluster`, `ysb`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from penstock_lab.cli.bench_options import COMPARED, REDIS, place, told
from penstock_lab.processes import end_on_sigterm


@click.command()
@COMPARED
def nexmark(**given: Any) -> None:
    _compare("nexmark", **given)


@click.command()
@COMPARED
def linearroad(**given: Any) -> None:
    _compare("linearroad", **given)


@click.command()
@COMPARED
def cluster(**given: Any) -> None:
    _compare("cluster", **given)


@click.command()
@COMPARED
@REDIS
def ysb(**given: Any) -> None:
    _compare("ysb", **given)


def _compare(
    name: str,
    *,
    quick: bool,
    json_file: Path | None,
    plot_file: Path | None,
    queries: tuple[str, ...],
    chosen: tuple[str, ...],
    rate: int | None,
    store: str,
    folder: Path | None,
    redis: str | None = None,
) -> None:
    from penstock_lab.experiment import compare
    from penstock_lab.experiment.outlet import Outlet
    from penstock_lab.experiment.plan import plan_of
    from penstock_lab.experiment.suites import SUITES as KNOWN

    end_on_sigterm()
    plan = plan_of(
        KNOWN[name],
        quick=quick,
        queries=queries,
        chosen=chosen,
        rate=rate,
        store=store,
        redis=redis,
    )
    console = Console(highlight=False)
    with told(console, compare.steps(plan)) as (tell, done):
        is_right = compare.run(
            plan, place(folder), tell, Outlet(console, json_file, plot_file, done)
        )
    if not is_right:
        raise SystemExit(1)
