"""A suite from its plan to its table, its result file and its picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from penstock.bench.campaigns import fill
from penstock.bench.figures import figures
from penstock.bench.harness import Harness, Open, Tell
from penstock.bench.needs import require_all
from penstock.bench.plan import Plan
from penstock.bench.record import in_file
from penstock.bench.report import Result, result, write
from penstock.bench.tables import show


def steps(plan: Plan) -> int:
    return Harness(plan, Path(), lambda _: None).steps


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
    require_all(plan, plot=plot_file is not None)
    if plan.redis is not None:
        fill(plan.redis, plan.seed)
    harness = Harness(plan, folder, tell, opening)
    try:
        harness.execute()
    finally:
        done()
        report(harness, console, json_file, plot_file)
    return not any(one.verdict.kind == "wrong" for one in harness.runs)


def report(
    harness: Harness, console: Console, json_file: Path | None, plot_file: Path | None
) -> Result:
    found = figures(harness.runs)
    runs = [in_file(run) for run in harness.runs]
    whole = result(harness.plan.suite, harness.plan.settings(), runs, found)
    if json_file is not None:
        write(whole, json_file)
    if harness.runs:
        show(console, harness.plan, harness.runs, found, harness.skipped)
    if plot_file is not None and harness.runs:
        from penstock.bench.plot import draw

        draw(harness.plan, harness.runs, plot_file)
    return whole
