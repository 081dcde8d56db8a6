"""Queries of one generator on several systems: `nexmark`, `linearroad`, `cluster` and `ysb`.

A Spark process per system and repeat runs the queries one after the other.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
from rich.console import Console

from penstock_lab.experiment import systems
from penstock_lab.experiment.campaigns import fill, fill_side_input
from penstock_lab.experiment.figures import (
    Figure,
    Goal,
    latency_p50,
    latency_p99,
    medians,
    ordered,
    ratio_over_pairs,
    sender_lag,
    verdict_counts,
)
from penstock_lab.experiment.losses import beside
from penstock_lab.experiment.minutes import minutes_of
from penstock_lab.experiment.needs import require_campaigns, require_port, require_queries
from penstock_lab.experiment.plan import LOCAL, Plan, WarmUp, plan_of
from penstock_lab.experiment.plot import over_time, picture, spread
from penstock_lab.experiment.query_sets import QUERY_SETS, key_of, only_log
from penstock_lab.experiment.record import Measured, in_file, run_of
from penstock_lab.experiment.rig import Bench, Rig, Seat
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.table import (
    Column,
    ranged,
    show_legend,
    show_losses,
    show_not_counted,
    show_short_warm_ups,
    show_summary,
    systems_table,
    value,
    with_range,
)
from penstock_lab.experiment.turns import Retries, Steps, Tell, rotated, with_retry
from penstock_lab.percentiles import median
from penstock_lab.queries import named

OURS = "penstock"
RIVALS = ("tuned", "default")
RATIO_MIN = 0.9
"""The least that p99 of `tuned` over ours may be: nothing is far behind."""
RATIOS_MIN = {"nexmark": 1.5}
"""Suites in which it is to be more."""


class Cell(msgspec.Struct, frozen=True):
    """A query that the systems are compared at."""

    query: str

    @property
    def name(self) -> str:
        return key_of(self.query)

    words = name


Record: TypeAlias = Measured[Cell]
Open: TypeAlias = Callable[[Plan, str, Path], contextlib.AbstractContextManager[Bench]]


def rig(plan: Plan, system: str, folder: Path) -> Rig:
    return Rig(system, folder, cores=plan.cores)


def require(plan: Plan) -> None:
    require_queries(plan.queries)
    if plan.redis is not None:
        require_campaigns(plan.redis)
    if any(systems.system(name).rows == "log" for name in plan.systems):
        require_port()


def skipped(plan: Plan) -> list[tuple[str, str, str]]:
    """System, query and reason of what cannot be run."""
    on_files = [name for name in plan.systems if systems.system(name).rows == "files"]
    return [
        (name, query, why)
        for name in on_files
        for query in plan.queries
        if (why := only_log(named(query))) is not None
    ]


def queries_on(plan: Plan, system: str) -> list[str]:
    left_out = {query for name, query, _ in skipped(plan) if name == system}
    return [query for query in plan.queries if query not in left_out]


def steps(plan: Plan) -> int:
    return plan.repeats * sum(len(queries_on(plan, system)) for system in plan.systems)


def runs(plan: Plan, folder: Path, _tell: Tell, opening: Open = rig) -> Steps[Record]:
    if plan.redis is not None:
        fill(plan.redis, plan.seed)
        fill_side_input(plan.redis)
    retries = Retries(plan.again_max, plan.again_until_s)
    for repeat in range(plan.repeats):
        for system in rotated(plan.systems, repeat):
            queries, place = queries_on(plan, system), folder / f"{system}-{repeat}"
            with contextlib.ExitStack() as closing:
                if queries:
                    seat = Seat.taken(closing, opening(plan, system, place))
                for query in queries:
                    words = f"{query} on {system}, {repeat + 1} of {plan.repeats}"
                    measure = partial(measured, plan, seat, query, system, repeat)
                    first = partial(measure, plan.warm_up(is_first=not seat.is_warm))
                    again = partial(measure, plan.warm_up(is_first=False))
                    yield from with_retry(words, first, again, retries)
            shutil.rmtree(place, ignore_errors=True)


def measured(
    plan: Plan, seat: Seat, query: str, system: str, repeat: int, warm_up: WarmUp
) -> Record:
    conditions = plan.conditions(query, warm_up.most_s, warm_up_batches=warm_up.batches)
    return Measured(Cell(query), run_of(conditions, system, repeat, seat.run(conditions)))


def past_window_p99(record: Record) -> float | None:
    return None if record.run.past_window is None else record.run.past_window.p99


FIGURES = (
    ("p50_ms", "ms", "latency of a result, median", latency_p50),
    ("p99_ms", "ms", "latency of a result, 99 of 100", latency_p99),
    (
        *("past_window_p99_ms", "ms", "past window end and watermark delay, 99 of 100"),
        past_window_p99,
    ),
)


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Per query: latencies of every system and their ratios; then the headline."""
    of_cells: list[Figure] = []
    headline: list[Figure] = []
    ratios: dict[str, list[Figure]] = {rival: [] for rival in RIVALS}
    for cell in ordered(record.cell for record in records):
        here = [record for record in records if record.cell == cell]
        for system in ordered(record.system for record in here):
            mine = [record for record in here if record.system == system]
            of_cells += medians(f"{cell.name}.{system}", mine, FIGURES)
        for rival in RIVALS:
            name = f"{cell.name}.ratio_p99_vs_{rival}"
            against = ratio_over_pairs(name, here, rival, OURS, latency_p99)
            of_cells += against
            ratios[rival] += against
    for rival, of_queries in ratios.items():
        if of_queries:
            least = min(of_queries, key=lambda figure: figure.value)
            doc = f"least of the ratios to {rival}: {least.name.split('.')[0]}; "
            doc += beside(rival, OURS)
            bound = Goal("at least", RATIOS_MIN.get(plan.suite, RATIO_MIN))
            goal = bound if rival == RIVALS[0] else None
            name = f"headline.ratio_p99_vs_{rival}_min"
            headline.append(Figure(name, "x", doc, least.value, least.repeats, goal))
    every = [record.run for record in records]
    return [*of_cells, *sender_lag(every), *headline, *verdict_counts(every)]


COLUMNS = (
    Column("p50", value("p50_ms")),
    Column("p99 (repeats)", with_range("p99_ms"), is_wrapped=True),
    Column("past", value("past_window_p99_ms")),
    Column(
        "ahead (repeats)",
        # The ratio is in the row of the system it compares with.
        lambda figures, cell, system: ranged(
            figures.get(f"{cell.name}.ratio_p99_vs_{system}"), "", 2
        ),
        is_wrapped=True,
    ),
)


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    """Latencies, then what sums them up, then every run that does not count and why."""
    store = "" if plan.store == LOCAL else f", checkpoints on {plan.store}"
    title = f"{plan.suite}: latency in ms, {plan.repeats} repeats of {plan.measure_s:g} s{store}"
    first = "query and system"
    console.print(systems_table(title, first, COLUMNS, plan.systems, records, figures))
    rates = ", ".join(f"{key_of(query)} {rate:,}" for query, rate in plan.rates.items())
    show_legend(
        console,
        f"at {plan.rate:,} events/s{f' ({rates})' if rates else ''}; past: p99 past the window's "
        "end and the watermark's delay; ahead: their p99 over ours, the middle over all pairs of "
        "runs, in brackets within each repeat; runs: those that count",
    )
    show_summary(console, plan.suite, figures, explained=False)
    show_losses(console, plan.systems)
    show_not_counted(console, records, lambda record: f"{record.cell.name} on {record.system}")
    show_short_warm_ups(console, records)
    for name, query, why in skipped(plan):
        console.print(f"not run: {key_of(query)} on {name}: {why}", soft_wrap=True)


def draw(plan: Plan, records: Sequence[Record], figures: Sequence[Figure], path: Path) -> None:
    """Only runs that count are drawn; a query without any has an empty row that says so."""
    rows = len(plan.queries)
    title = f"{plan.suite}: event-time latency of visible results"
    size = (11.0, 0.9 + 2.6 * rows)
    with picture(path, title, plan.systems, (rows, 2), size, 0.5) as (axes, colours):
        for row, query in enumerate(plan.queries):
            counted = [r.run for r in records if r.cell == Cell(query) and r.is_counted]
            words = f"{key_of(query)}, {plan.rate_of(query):,} events/s"
            warm_up_s = median([run.warm_up_s for run in counted]) or 0.0
            over_time(axes[row][0], words, counted, colours, warm_up_s)
            spread(axes[row][1], words, counted, colours)


SUITES: dict[str, Suite[Plan, Record]] = {
    query_set.name: Suite(
        name=query_set.name,
        plan_of=partial(plan_of, query_set),
        steps=steps,
        runs=runs,
        figures=figures,
        settings=lambda plan: plan.settings(),
        in_file=lambda record: in_file(record.run),
        show=show,
        draw=draw,
        require=require,
        minutes=partial(minutes_of, queries_on=queries_on),
        is_right=lambda record: record.is_right,
    )
    for query_set in QUERY_SETS.values()
}
