"""Finds the highest rate at which a query's latency does not keep rising.

The search is pure: it is told how a rate went and says which to try next. It doubles until a rate
is not sustained, then halves the interval between the highest sustained and the lowest that was
not. A rate is sustained if the run counts and latency after warm-up does not rise: a system that
falls behind by a part of what comes in rises by that part of a second in each second.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from penstock.errors import BadCall
from penstock_lab.experiment import systems
from penstock_lab.experiment.harness import Open, Tell, rigs
from penstock_lab.experiment.needs import require_all
from penstock_lab.experiment.outlet import Outlet
from penstock_lab.experiment.plan import LOCAL, Plan, plan_of
from penstock_lab.experiment.record import Run, in_file, run_of
from penstock_lab.experiment.report import Figure, result
from penstock_lab.experiment.suites import key_of, suite_of

QUERIES = ("q1", "q18")
RATE_FIRST = 10_000
RATE_MAX = 160_000
SLOPE_MS_PER_S_MAX = 50.0
"""A rise of 50 ms per second: 5 % of the input is not kept up with. Noise rises less."""
QUICK_SYSTEMS = ("tuned", "penstock")
PRECISION = 1.15
"""The search ends when the rate that failed is this many times the rate that held, or less."""


class Tried(msgspec.Struct, frozen=True):
    """One rate and how it went."""

    rate: int
    is_sustained: bool
    how: str = ""


class Search(msgspec.Struct, frozen=True):
    """What to look for, on what."""

    plans: tuple[Plan, ...]
    """One for each pair of query and system."""
    rate_first: int
    rate_max: int
    tries_max: int


def is_sustained(run: Run, slope_max: float = SLOPE_MS_PER_S_MAX) -> bool:
    """A run that does not count does not hold its rate: nor if it was the sender that was late."""
    slope = run.slope_ms_per_s
    return run.is_counted and slope is not None and slope <= slope_max


def next_rate(tried: list[Tried], first: int, rate_max: int, tries_max: int) -> int | None:
    """The rate to try now; None when there is nothing more to learn."""
    held = max((one.rate for one in tried if one.is_sustained), default=0)
    failed = min((one.rate for one in tried if not one.is_sustained), default=None)
    if not tried:
        return min(first, rate_max)
    if len(tried) >= tries_max or held >= rate_max:
        return None
    if failed is None:
        return min(2 * held, rate_max)
    if held == 0:
        return failed // 4 or None
    if failed <= held * PRECISION:
        return None
    return (held + failed) // 2


def search_of(
    queries: tuple[str, ...],
    chosen: tuple[str, ...],
    *,
    quick: bool,
    rate_max: int | None = None,
    store: str = LOCAL,
) -> Search:
    """The search of a command line."""
    plans = []
    for query in queries or QUERIES:
        suite = suite_of(query)
        if suite.name == "ysb":
            raise BadCall("ysb cannot be searched; give another query", code="bad_request")
        names = chosen or (QUICK_SYSTEMS if quick else systems.QUICK)
        plan = plan_of(suite, quick=True, queries=(query,), chosen=names, store=store)
        plans += [
            msgspec.structs.replace(
                plan,
                systems=(name,),
                repeats=1,
                measure_s=10.0 if quick else 30.0,
                warm_up_s=5.0 if quick else 10.0,
                again_max=0,
            )
            for name in names
        ]
    top = rate_max or RATE_MAX
    return Search(tuple(plans), min(RATE_FIRST, top), top, 7 if quick else 10)


def steps(search: Search) -> int:
    """The most runs it can take."""
    return len(search.plans) * search.tries_max


def run(
    search: Search,
    folder: Path,
    tell: Tell,
    outlet: Outlet,
    opening: Open | None = None,
) -> list[Figure]:
    """Search for every query and system."""
    for plan in search.plans:
        require_all(plan, plot=False)
    runs: list[Run] = []
    found: list[Figure] = []
    place = Path(tempfile.mkdtemp(prefix="penstock-sustain-", dir=folder))
    try:
        with outlet.reporting(partial(_report, search, runs, found)):
            for number, plan in enumerate(search.plans):
                tried = _search_one(
                    search, plan, place / str(number), tell, runs, opening or rigs()
                )
                found.append(figure(plan, tried))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return found


def _search_one(
    search: Search, plan: Plan, folder: Path, tell: Tell, runs: list[Run], opening: Open
) -> list[Tried]:
    (query,), (name,) = plan.queries, plan.systems
    tried: list[Tried] = []
    with opening(plan, name, folder) as bench:
        while (rate := _next(search, tried)) is not None:
            tell(f"{query} on {name} at {rate:,}/s")
            # Only the first run of a process meets code that is not compiled yet.
            warm_up_s = plan.warm_up_s if tried else plan.first_warm_up_s
            noted = bench.run(query, warm_up_s, rate)
            run = run_of(query, name, len(tried), rate, noted, plan.frame(warm_up_s))
            runs.append(run)
            tried.append(Tried(rate, is_sustained(run), how(run)))
    return tried


def how(run: Run) -> str:
    """In a few words, how a rate went."""
    if is_sustained(run):
        return "held"
    if run.verdict.reasons:
        return str(run.verdict)
    return "too few results to tell" if run.slope_ms_per_s is None else "latency rises"


def _next(search: Search, tried: list[Tried]) -> int | None:
    return next_rate(tried, search.rate_first, search.rate_max, search.tries_max)


def figure(plan: Plan, tried: list[Tried]) -> Figure:
    (query,), (name,) = plan.queries, plan.systems
    held = max((one.rate for one in tried if one.is_sustained), default=0)
    failed = min((one for one in tried if not one.is_sustained), default=None, key=_rate)
    what = (
        "the highest rate that was to be tried, so the limit is higher"
        if failed is None
        else f"the highest rate tried that held; at {failed.rate:,} {failed.how}"
    )
    return Figure(f"{key_of(query)}.{name}.sustained_per_s", "events/s", what, float(held))


def _rate(tried: Tried) -> int:
    return tried.rate


def _report(search: Search, runs: list[Run], found: list[Figure], outlet: Outlet) -> None:
    settings = msgspec.to_builtins(search)
    whole = result("sustain", settings, [in_file(run) for run in runs], found)
    outlet.put(whole, lambda console: _show(console, runs, found))


def _show(console: Console, runs: list[Run], found: list[Figure]) -> None:
    table = Table(title="sustained rate", box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in ("query", "system", "events/s", "p99 ms", "rises ms/s", ""):
        table.add_column(name, justify="left" if name in ("query", "system", "") else "right")
    for run in runs:
        p99 = "-" if run.latency is None else f"{run.latency.p99:,.0f}"
        slope = "-" if run.slope_ms_per_s is None else f"{run.slope_ms_per_s:,.0f}"
        table.add_row(key_of(run.query), run.system, f"{run.rate:,}", p99, slope, how(run))
    console.print(table)
    for one in found:
        console.print(f"{one.name}: {one.value:,.0f}: {one.what}", soft_wrap=True)
