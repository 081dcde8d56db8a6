"""A suite from its plan to its table, its result file and its picture."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from penstock.bench.campaigns import fill
from penstock.bench.figures import figures
from penstock.bench.harness import Harness, Open, Tell
from penstock.bench.needs import require_all
from penstock.bench.outlet import Outlet
from penstock.bench.plan import Plan
from penstock.bench.plot import draw
from penstock.bench.record import in_file
from penstock.bench.report import Result, result
from penstock.bench.tables import show


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
