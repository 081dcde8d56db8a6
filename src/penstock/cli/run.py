"""`penstock run`: a PySpark job under supervision."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from penstock.cli.measures import SECONDS
from penstock.clock import SYSTEM_CLOCK
from penstock.supervise.job import Job
from penstock.supervise.restarts import Bounds, Restarts
from penstock.supervise.supervised_run import run_until_final


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--restarts", default=10, show_default=True, type=click.IntRange(0),
    help="Restarts within --window before giving up.",
)  # fmt: skip
@click.option(
    "--window", default="10m", show_default=True, type=SECONDS,
    help="How far back failures count: 500ms, 30s, 10m, 1h.",
)  # fmt: skip
@click.option(
    "--backoff", default="1s", show_default=True, type=SECONDS,
    help="Pause before the first restart; doubled for each one more, up to 30s.",
)  # fmt: skip
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(restarts: int, window: float, backoff: float, script: Path, args: tuple[str, ...]) -> int:
    """Run a PySpark job, and start it again when it fails.

    SCRIPT is run with this Python and ARGS. Ended with 0, it is done. Ended otherwise, it is
    started again after a pause, and each query goes on from its last committed batch. Errors that
    a restart cannot mend (a newer run has taken over, a wrong call, damaged data) and too many
    failures in a row end it for good, with the job's last lines and who must act. Ctrl-C and
    SIGTERM stop the job; what it has not finished 30 s later is killed.

    \b
    Example, for a job that ends with query.awaitTermination():
      penstock run --restarts 20 --window 1h hot_items.py --rate 2000
    """
    job = Job([sys.executable, str(script), *args], SYSTEM_CLOCK)
    policy = Restarts(Bounds(restarts, window, backoff))
    with job.passing_signals():
        return run_until_final(str(script), job, policy, _say)


def _say(sentence: str) -> None:
    click.echo(f"penstock run: {sentence}", err=True)
