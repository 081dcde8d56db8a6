"""`penstock demo`: the whole system on this machine, with every answer checked."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console

from penstock_lab.processes import end_on_sigterm


@click.command()
@click.option("--seconds", default=45.0, show_default=True, help="How long bids are sent.")
@click.option("--rate", default=2_000, show_default=True, help="Bids per second.")
@click.option("--data", type=click.Path(path_type=Path), help="Keep everything in this folder.")
@click.option("--seed", default=7, show_default=True, help="The same seed sends the same bids.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write figures here.")
def demo(seconds: float, rate: int, data: Path | None, seed: int, json_file: Path | None) -> None:
    """Run two chained stateful queries over generated bids, and check every committed row.

    A sender puts bids into a stream at a fixed rate; auction_totals keeps count, sum and maximum
    per auction; category_leaders reads its results. A reader outside Spark measures how old each
    result is when it becomes visible. At the end DuckDB recomputes every batch of both queries from
    the log; the exit code is 1 if a row differs or nothing was committed.
    """
    from penstock_lab.demo.run import Plan, run
    from penstock_lab.demo.screen import show

    if seconds <= 0 or rate < 1 or seed < 0:
        raise click.UsageError("--seconds is above 0, --rate at least 1, --seed not negative")
    end_on_sigterm()
    console = Console(highlight=False)
    outcome = run(Plan(seconds, rate, seed, data), console)
    show(console, outcome)
    if json_file is not None:
        whole = {**msgspec.to_builtins(outcome), "figures": outcome.figures()}
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n")
    if outcome.failure is not None:
        sys.exit(1)
