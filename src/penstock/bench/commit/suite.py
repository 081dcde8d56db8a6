"""The suite from its plan to its tables, its result file and its picture."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from penstock.bench.commit.figures import figures
from penstock.bench.commit.plan import Plan
from penstock.bench.commit.plot import draw
from penstock.bench.commit.record import for_file
from penstock.bench.commit.rig import Open
from penstock.bench.commit.tables import show
from penstock.bench.commit.trial import Tell, Trial
from penstock.bench.needs import require_port, require_queries
from penstock.bench.outlet import Outlet
from penstock.bench.report import Result, result

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
