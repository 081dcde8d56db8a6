"""The suite from its plans to its tables, its result file and its picture.

A level is a trial with runs and figures of its own, named by it: `log.…` and `spark.…`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from penstock_lab.experiment import jetstream
from penstock_lab.experiment.needs import require_port, require_queries
from penstock_lab.experiment.outlet import Outlet
from penstock_lab.experiment.report import Figure, Result, result
from penstock_lab.suites.commit import plan as commit
from penstock_lab.suites.commit.trial import Trial as SparkTrial
from penstock_lab.suites.protocols import spark
from penstock_lab.suites.protocols.figures import LEVEL, figures
from penstock_lab.suites.protocols.plan import JETSTREAM, Plan
from penstock_lab.suites.protocols.plot import draw
from penstock_lab.suites.protocols.record import for_file
from penstock_lab.suites.protocols.tables import show, show_spark
from penstock_lab.suites.protocols.trial import Tell, Trial

SUITE = "protocols"


def run(
    plan: Plan | None,
    on_spark: commit.Plan | None,
    folder: Path,
    tell: Tell,
    outlet: Outlet,
) -> bool:
    """Run, show, write; whether every answer was right. A level whose plan is None is left out."""
    if plan is not None and plan.log == JETSTREAM:
        jetstream.require_servers("--log embedded")
    if on_spark is not None:
        require_queries({cell.query for group in on_spark.groups for cell in group.cells})
        require_port()
    outlet.require()
    trial = None if plan is None else Trial(plan, folder, tell)
    tried = None if on_spark is None else SparkTrial(on_spark, folder, tell, spark.OPENING)
    with outlet.reporting(partial(report, trial, tried)):
        if trial is not None:
            trial.execute()
        if tried is not None:
            tried.execute()
    runs = [one.run for one in (trial.runs if trial else [])]
    runs += [one.run for one in (tried.runs if tried else [])]
    return not any(one.verdict.kind == "wrong" for one in runs)


def report(trial: Trial | None, tried: SparkTrial | None, outlet: Outlet) -> Result:
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

    def shown(console: Console) -> None:
        if trial is not None and trial.runs:
            show(console, trial.plan, trial.runs, found)
        if tried is not None and tried.runs:
            show_spark(console, tried.plan, tried.runs, on_spark)

    def drawn(path: Path) -> None:
        if trial is not None and trial.runs:
            draw(trial.plan, trial.runs, path)

    outlet.put(whole, shown, drawn)
    return whole
