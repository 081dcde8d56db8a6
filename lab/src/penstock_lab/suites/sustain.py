"""The highest rate at which a query's latency does not keep rising, of every query and system."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from penstock.errors import BadCall
from penstock_lab.experiment import systems
from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.plan import LOCAL, Plan, plan_of
from penstock_lab.experiment.query_sets import key_of, query_set_of
from penstock_lab.experiment.record import Measured, in_file, run_of
from penstock_lab.experiment.rig import Seat
from penstock_lab.experiment.search import Searched, ended_search, how, searching
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.turns import Step, Steps, Tell
from penstock_lab.suites import compared
from penstock_lab.suites.compared import Cell, Open, Record

QUERIES = ("q1", "q18")
RATE_FIRST = 10_000
RATE_MAX = 160_000
QUICK_SYSTEMS = ("tuned", "penstock")


class Search(msgspec.Struct, frozen=True):
    """A search for the highest rate: of which queries, on which systems."""

    plans: tuple[Plan, ...]
    """One for each pair of query and system."""
    rate_first: int
    rate_max: int
    tries_max: int


def search_of(
    *,
    quick: bool = False,
    queries: tuple[str, ...] = (),
    chosen: tuple[str, ...] = (),
    rate: int | None = None,
    store: str = LOCAL,
) -> Search:
    """The search of a command line; `rate` is the highest to try."""
    plans = []
    for query in queries or QUERIES:
        query_set = query_set_of(query)
        if query_set.name == "ysb":
            raise BadCall("ysb cannot be searched; give another query", code="bad_request")
        names = chosen or (QUICK_SYSTEMS if quick else systems.QUICK)
        plan = plan_of(query_set, quick=True, queries=(query,), chosen=names, store=store)
        plans += [
            msgspec.structs.replace(
                plan,
                systems=(name,),
                repeats=1,
                measure_s=10.0 if quick else 30.0,
                warm_up_s=5.0 if quick else 10.0,
                first_warm_up_s=6.0,
                again_max=0,
            )
            for name in names
        ]
    top = rate or RATE_MAX
    return Search(tuple(plans), min(RATE_FIRST, top), top, 7 if quick else 10)


def steps(search: Search) -> int:
    """The most runs it can take."""
    return len(search.plans) * search.tries_max


def require(search: Search) -> None:
    for plan in search.plans:
        compared.require(plan)


def runs(search: Search, folder: Path, _tell: Tell, opening: Open = compared.rig) -> Steps[Record]:
    for number, plan in enumerate(search.plans):
        (system,) = plan.systems
        with ExitStack() as closing:
            seat = Seat.taken(closing, opening(plan, system, folder / str(number)))
            yield from searching(search, partial(step, plan, seat))


def step(plan: Plan, seat: Seat, rate: int, place: int) -> Step[Record]:
    (query,), (system,) = plan.queries, plan.systems
    words = f"{query} on {system} at {rate:,}/s"
    return Step(words, partial(measured, plan, seat, rate, place))


def measured(plan: Plan, seat: Seat, rate: int, place: int) -> Record:
    (query,), (system,) = plan.queries, plan.systems
    warm_up_s = plan.warm_up_s if seat.is_warm else plan.first_warm_up_s
    conditions = plan.conditions(query, warm_up_s, rate)
    return Measured(Cell(query), run_of(conditions, system, place, seat.run(conditions)), "sustain")


def figures(search: Search, records: Sequence[Record]) -> list[Figure]:
    """One of each search that came to its end."""
    of_searches = []
    for plan in search.plans:
        (query,), (system,) = plan.queries, plan.systems
        mine = [r.run for r in records if (r.cell.query, r.system) == (query, system)]
        searched = ended_search(search, mine, Cell(query), system)
        if searched is not None:
            of_searches.append(figure(searched))
    return of_searches


def figure(searched: Searched) -> Figure:
    at = next(
        (tried_rate for tried_rate in searched.tried if tried_rate.rate == searched.failed), None
    )
    reason = (
        "the highest rate that was to be tried, so the limit is higher"
        if at is None
        else f"the highest rate tried that held; at {at.rate:,} {at.how}"
    )
    name = f"{searched.cell.name}.{searched.system}.sustained_per_s"
    return Figure(name, "events/s", reason, float(searched.held))


def settings(search: Search) -> dict[str, Any]:
    return dict(msgspec.to_builtins(search))


def show(
    console: Console, search: Search, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    table = Table(title="sustained rate", box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in ("query", "system", "events/s", "p99 ms", "rises ms/s", ""):
        table.add_column(name, justify="left" if name in ("query", "system", "") else "right")
    for record in records:
        run = record.run
        p99 = "-" if run.latency is None else f"{run.latency.p99:,.0f}"
        slope = "-" if run.slope_ms_per_s is None else f"{run.slope_ms_per_s:,.0f}"
        table.add_row(key_of(run.query), run.system, f"{run.rate:,}", p99, slope, how(run))
    console.print(table)
    for figure in figures:
        console.print(f"{figure.name}: {figure.value:,.0f}: {figure.meaning}", soft_wrap=True)


SUITE: Suite[Search, Record] = Suite(
    name="sustain",
    plan_of=search_of,
    steps=steps,
    runs=runs,
    figures=figures,
    settings=settings,
    in_file=lambda record: in_file(record.run),
    show=show,
    require=require,
    is_right=lambda record: record.is_right,
)
