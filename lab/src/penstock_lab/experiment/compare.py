"""A suite from its plan to its table, its result file and its picture."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from penstock_lab.experiment.campaigns import fill
from penstock_lab.experiment.figures import figures
from penstock_lab.experiment.harness import Harness, Open, Tell
from penstock_lab.experiment.needs import require_all
from penstock_lab.experiment.outlet import Outlet
from penstock_lab.experiment.plan import Plan
from penstock_lab.experiment.plot import draw
from penstock_lab.experiment.record import in_file
from penstock_lab.experiment.report import Result, result
from penstock_lab.experiment.tables import show


def steps(plan: Plan) -> int:
    return Harness(plan, Path(), lambda _: None).steps


def run(
    plan: Plan,
    folder: Path,
    tell: Tell,
    outlet: Outlet,
    *,
    opening: Open | None = None,
) -> bool:
    """Run, show, write; whether every answer was right."""
    require_all(plan, plot=outlet.plot_file is not None)
    if plan.redis is not None:
        fill(plan.redis, plan.seed)
    harness = Harness(plan, folder, tell, opening)
    with outlet.reporting(partial(report, harness)):
        harness.execute()
    return not any(one.verdict.kind == "wrong" for one in harness.runs)


def report(harness: Harness, outlet: Outlet) -> Result:
    found = figures(harness.runs)
    runs = [in_file(run) for run in harness.runs]
    whole = result(harness.plan.suite, harness.plan.settings(), runs, found)
    outlet.put(
        whole,
        lambda console: show(console, harness.plan, harness.runs, found, harness.skipped),
        lambda path: draw(harness.plan, harness.runs, path),
        is_empty=not harness.runs,
    )
    return whole
