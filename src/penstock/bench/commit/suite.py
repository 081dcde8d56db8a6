"""The suite from its plan to its tables, its result file and its picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from penstock.bench.commit.figures import figures
from penstock.bench.commit.plan import Plan
from penstock.bench.commit.record import for_file
from penstock.bench.commit.rig import Open
from penstock.bench.commit.tables import show
from penstock.bench.commit.trial import Tell, Trial
from penstock.bench.needs import is_installed, require_plot, require_port, require_queries
from penstock.bench.report import Result, result, write

SUITE = "commit"


def run(
    plan: Plan,
    folder: Path,
    tell: Tell,
    console: Console,
    json_file: Path | None = None,
    plot_file: Path | None = None,
    *,
    done: Callable[[], None] = lambda: None,
    opening: Open | None = None,
) -> bool:
    """Run, show, write; whether every answer was right.

    Interrupted, it shows and writes what was measured so far and then goes on being interrupted.
    `done` is called before anything is shown.
    """
    require_queries({cell.query for group in plan.groups for cell in group.cells})
    if plot_file is not None:
        require_plot(is_installed)
    require_port()
    trial = Trial(plan, folder, tell, opening)
    try:
        trial.execute()
    finally:
        done()
        report(trial, console, json_file, plot_file)
    return not any(one.run.verdict.kind == "wrong" for one in trial.runs)


def report(
    trial: Trial, console: Console, json_file: Path | None, plot_file: Path | None
) -> Result:
    found = figures(trial.plan, trial.runs, trial.searched)
    runs = [for_file(one) for one in trial.runs]
    whole = result(SUITE, trial.plan.settings(), runs, found)
    if json_file is not None:
        write(whole, json_file)
    if trial.runs:
        show(console, trial.plan, trial.runs, found)
    if plot_file is not None and trial.runs:
        from penstock.bench.commit.plot import draw

        draw(trial.plan, trial.runs, plot_file)
    return whole
