"""The suite from its plan to its table, its result file and its picture.

Figures are named by the level that protocols are compared at: `log.…`, on a task graph over the log
itself.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.console import Console

from penstock_lab.experiment import jetstream
from penstock_lab.experiment.outlet import Outlet
from penstock_lab.experiment.report import Result, result
from penstock_lab.suites.protocols.figures import LEVEL, figures
from penstock_lab.suites.protocols.plan import JETSTREAM, Plan
from penstock_lab.suites.protocols.plot import draw
from penstock_lab.suites.protocols.record import for_file
from penstock_lab.suites.protocols.tables import show
from penstock_lab.suites.protocols.trial import Tell, Trial

SUITE = "protocols"


def run(plan: Plan, folder: Path, tell: Tell, outlet: Outlet) -> bool:
    """Run, show, write; whether every answer was right."""
    if plan.log == JETSTREAM:
        jetstream.require_servers("--log embedded")
    outlet.require()
    trial = Trial(plan, folder, tell)
    with outlet.reporting(partial(report, trial)):
        trial.execute()
    return not any(measured.run.verdict.kind == "wrong" for measured in trial.runs)


def report(trial: Trial, outlet: Outlet) -> Result:
    """Shows and writes what the trial has come to."""
    settings = {LEVEL: trial.plan.settings()}
    runs = [{"level": LEVEL, **for_file(measured)} for measured in trial.runs]
    found = figures(trial.plan, trial.runs)
    whole = result(SUITE, settings, runs, found)

    def shown(console: Console) -> None:
        if trial.runs:
            show(console, trial.plan, trial.runs, found)

    def drawn(path: Path) -> None:
        if trial.runs:
            draw(trial.plan, trial.runs, path)

    outlet.put(whole, shown, drawn)
    return whole
