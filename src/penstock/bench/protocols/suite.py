"""The suite from its plans to its tables, its result file and its picture.

A level is a trial with runs and figures of its own, named by it: `log.…` and `spark.…`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from penstock.bench import jetstream
from penstock.bench.commit import plan as commit
from penstock.bench.commit.trial import Trial as SparkTrial
from penstock.bench.needs import is_installed, require_plot, require_port, require_queries
from penstock.bench.protocols import spark
from penstock.bench.protocols.figures import LEVEL, figures
from penstock.bench.protocols.plan import JETSTREAM, Plan
from penstock.bench.protocols.record import for_file
from penstock.bench.protocols.tables import show, show_spark
from penstock.bench.protocols.trial import Tell, Trial
from penstock.bench.report import Figure, Result, result, write

SUITE = "protocols"


def run(
    plan: Plan | None,
    on_spark: commit.Plan | None,
    folder: Path,
    tell: Tell,
    console: Console,
    json_file: Path | None = None,
    plot_file: Path | None = None,
    *,
    done: Callable[[], None] = lambda: None,
) -> bool:
    """Run, show, write; whether every answer was right. A level whose plan is None is left out.

    Interrupted, it shows and writes what was measured so far and then goes on being interrupted.
    `done` is called before anything is shown.
    """
    if plan is not None and plan.log == JETSTREAM:
        jetstream.require_servers("--log embedded")
    if on_spark is not None:
        require_queries({cell.query for group in on_spark.groups for cell in group.cells})
        require_port()
    if plot_file is not None:
        require_plot(is_installed)
    trial = None if plan is None else Trial(plan, folder, tell)
    tried = None if on_spark is None else SparkTrial(on_spark, folder, tell, spark.OPENING)
    try:
        if trial is not None:
            trial.execute()
        if tried is not None:
            tried.execute()
    finally:
        done()
        report(trial, tried, console, json_file, plot_file)
    runs = [one.run for one in (trial.runs if trial else [])]
    runs += [one.run for one in (tried.runs if tried else [])]
    return not any(one.verdict.kind == "wrong" for one in runs)


def report(
    trial: Trial | None,
    tried: SparkTrial | None,
    console: Console,
    json_file: Path | None,
    plot_file: Path | None,
) -> Result:
    """Shows and writes what each level has come to."""
    settings: dict[str, Any] = {}
    runs: list[dict[str, Any]] = []
    found: list[Figure] = []
    if trial is not None:
        settings[LEVEL] = trial.plan.settings()
        runs += [{"level": LEVEL, **for_file(one)} for one in trial.runs]
        found += figures(trial.plan, trial.runs)
    on_spark: list[Figure] = []
    if tried is not None:
        settings[spark.LEVEL] = spark.settings(tried.plan)
        runs += spark.runs_for_file(tried.runs)
        on_spark = spark.figures(tried.plan, tried.runs)
    whole = result(SUITE, settings, runs, [*found, *on_spark])
    if json_file is not None:
        write(whole, json_file)
    if trial is not None and trial.runs:
        show(console, trial.plan, trial.runs, found)
    if tried is not None and tried.runs:
        show_spark(console, tried.plan, tried.runs, on_spark)
    if plot_file is not None and trial is not None and trial.runs:
        from penstock.bench.protocols.plot import draw

        draw(trial.plan, trial.runs, plot_file)
    return whole
