"""The suite from its plan to its tables, its result file and its picture."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from penstock_lab.experiment.needs import require_port, require_queries
from penstock_lab.experiment.outlet import Outlet
from penstock_lab.experiment.report import Result, result
from penstock_lab.suites.commit.figures import figures
from penstock_lab.suites.commit.plan import Plan
from penstock_lab.suites.commit.plot import draw
from penstock_lab.suites.commit.record import for_file
from penstock_lab.suites.commit.rig import Open
from penstock_lab.suites.commit.tables import show
from penstock_lab.suites.commit.trial import Tell, Trial

SUITE = "commit"


def run(
    plan: Plan,
    folder: Path,
    tell: Tell,
    outlet: Outlet,
    *,
    opening: Open | None = None,
) -> bool:
    """Run, show, write; whether every answer was right."""
    require_queries({cell.query for group in plan.groups for cell in group.cells})
    outlet.require()
    require_port()
    trial = Trial(plan, folder, tell, opening)
    with outlet.reporting(partial(report, trial)):
        trial.execute()
    return not any(one.run.verdict.kind == "wrong" for one in trial.runs)


def report(trial: Trial, outlet: Outlet) -> Result:
    found = figures(trial.plan, trial.runs, trial.searched)
    runs = [for_file(one) for one in trial.runs]
    whole = result(SUITE, trial.plan.settings(), runs, found)
    outlet.put(
        whole,
        lambda console: show(console, trial.plan, trial.runs, found),
        lambda path: draw(trial.plan, trial.runs, path),
        is_empty=not trial.runs,
    )
    return whole
