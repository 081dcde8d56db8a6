"""What it costs to commit at short intervals, protocol by protocol, on task graphs without Spark.

Every repeat has a log of its own. The tasks' phases are drawn from the repeat's number, the same
for all protocols, because what a row waits for at each stage depends on them. A ratio is theirs
over ours, so that above 1 is ahead; what the marker costs over no protocol at all is above 1 by
nature.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from penstock.errors import BadCall
from penstock_lab.baselines.task_graph import graph_process
from penstock_lab.baselines.task_graph.graph_process import LogProcess
from penstock_lab.baselines.task_graph.registry import GRAPHS, PROTOCOLS, Protocol
from penstock_lab.experiment import jetstream
from penstock_lab.experiment.figures import (
    Figure,
    Goal,
    Ratio,
    latency_p50,
    latency_p99,
    medians,
    ordered,
    ratios,
    sender_lag,
    verdict_counts,
)
from penstock_lab.experiment.plan import Conditions
from penstock_lab.experiment.plot import picture, spread
from penstock_lab.experiment.record import Measured, in_file, run_of
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.table import (
    Column,
    Figures,
    show_legend,
    show_not_counted,
    show_summary,
    systems_table,
    with_range,
)
from penstock_lab.experiment.turns import Retries, Steps, Tell, rotated, with_retry
from penstock_lab.measure.log_sizes import EMBEDDED, JETSTREAM
from penstock_lab.measure.task_graph_runs import log_host, measure

LEVEL = "log"
INTERVALS_MS = (100, 50, 25, 10)
SHORTEST_MS = 10
RATES = {"q4": 2_000, "q8": 10_000}
"""Events of all kinds per second. Q8 reads four of fifty, Q4 forty-nine."""
P50_GOAL, P99_GOAL, P50_MIN_GOAL, UNSAFE_GOAL = 1.4, 3.1, 1.0, 2.0
# Starting the processes of a run, waiting until nothing more comes, and checking: seconds on quiet
# cores.
AROUND_S = 3.2


class Cell(msgspec.Struct, frozen=True):
    """What the protocols are compared at."""

    query: str
    interval_ms: int

    @property
    def name(self) -> str:
        return f"{LEVEL}.{self.query.upper()}.{self.interval_ms}ms"

    @property
    def words(self) -> str:
        return f"{self.query.upper()} every {self.interval_ms} ms"


class Record(Measured[Cell], frozen=True):
    """A run of a protocol at a cell."""

    commits_per_s: float = 0.0
    """Of the task that committed least often; the interval asks for 1,000 over it."""


class Plan(msgspec.Struct, frozen=True):
    """Everything the figures depend on; written into the result file as it is."""

    queries: tuple[str, ...]
    protocols: tuple[Protocol, ...]
    intervals_ms: tuple[int, ...]
    repeats: int
    measure_s: float
    warm_up_s: float
    rates: dict[str, int]
    log: str = JETSTREAM
    tick_ms: int = 10
    seed: int = 7
    quiet_s: float = 1.0
    drain_s: float = 15.0
    stall_s: float = 3.0
    again_max: int = 8
    """How many runs that are void, because the sender was late, are run once more."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(Cell(query, ms) for query in self.queries for ms in self.intervals_ms)

    @property
    def steps(self) -> int:
        return self.repeats * len(self.cells) * len(self.protocols)

    @property
    def minutes(self) -> float:
        """About how long it takes where nothing has to be repeated."""
        return self.steps * (self.warm_up_s + self.measure_s + AROUND_S) / 60

    def conditions(self, query: str) -> Conditions:
        return Conditions(
            query,
            self.rates[query],
            self.warm_up_s,
            self.measure_s,
            stall_s=self.stall_s,
            drain_s=self.drain_s,
            tick_ms=self.tick_ms,
            seed=self.seed,
        )


def plan_of(
    *,
    quick: bool = False,
    queries: tuple[str, ...] = (),
    chosen: tuple[str, ...] = (),
    intervals_ms: tuple[int, ...] = (),
    rate: int | None = None,
    levels: tuple[str, ...] = (),
    log: str = JETSTREAM,
) -> Plan:
    """The plan of a command line; `levels` can only name the one there is."""
    for what, names, choices in (
        ("task graph", queries, tuple(GRAPHS)),
        ("protocol", chosen, PROTOCOLS),
        ("log", (log,), (JETSTREAM, EMBEDDED)),
    ):
        for name in names:
            if name not in choices:
                there = ", ".join(choices)
                raise BadCall(
                    f"there is no {what} {name!r}; there is {there}", code="unknown_query"
                )
    graphs = tuple(queries or RATES)
    return Plan(
        graphs,
        tuple(name for name in PROTOCOLS if not chosen or name in chosen),
        intervals_ms or INTERVALS_MS,
        repeats=3 if quick else 5,
        measure_s=2.75 if quick else 30.0,
        warm_up_s=1.0 if quick else 5.0,
        rates={query: rate or RATES[query] for query in graphs},
        log=log,
    )


def require(plan: Plan) -> None:
    if plan.log == JETSTREAM:
        jetstream.require_servers("--log embedded")


def settings(plan: Plan) -> dict[str, Any]:
    servers = jetstream.settings() if plan.log == JETSTREAM else {}
    return {LEVEL: {**msgspec.to_builtins(plan), "jetstream": servers}}


def for_file(record: Record) -> dict[str, Any]:
    return {
        "level": LEVEL,
        **in_file(record.run),
        "interval_ms": record.cell.interval_ms,
        "commits_per_s": record.commits_per_s,
    }


def runs(plan: Plan, folder: Path, _tell: Tell) -> Steps[Record]:
    retries, names = Retries(plan.again_max), (f"n{number}" for number in itertools.count(1))

    def measured(cell: Cell, protocol: Protocol, repeat: int, host: LogProcess) -> Record:
        graph = graph_process.Plan(cell.query, protocol, next(names), cell.interval_ms, seed=repeat)
        conditions = plan.conditions(cell.query)
        noted, commits_per_s = measure(graph, conditions, host, plan.quiet_s)
        run = run_of(conditions, protocol, repeat, noted)
        return Record(cell, run, commits_per_s=round(commits_per_s, 1))

    for repeat in range(plan.repeats):
        place = folder / f"r{repeat}"
        with log_host(plan.log, place) as host:
            for number, cell in enumerate(plan.cells):
                # Whoever goes first may find the machine cooler: they take turns in that too.
                for protocol in rotated(plan.protocols, repeat + number):
                    words = f"{cell.words}: {protocol}, {repeat + 1} of {plan.repeats}"
                    one = partial(measured, cell, protocol, repeat, host)
                    yield from with_retry(words, one, one, retries)
        shutil.rmtree(place)


FIGURES = (
    ("p50_ms", "ms", "event-time latency of visible results, median", latency_p50),
    ("p99_ms", "ms", "event-time latency of visible results, 99 of 100", latency_p99),
    (
        *("commits_per_s", "", "of the task that committed least often"),
        lambda record: record.commits_per_s,
    ),
)


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Per cell and protocol its latencies; then the sender; then the headline."""
    found: list[Figure] = []
    for cell in ordered(record.cell for record in records):
        for protocol in plan.protocols:
            mine = [r for r in records if (r.cell, r.system) == (cell, protocol)]
            found += medians(f"{cell.name}.{protocol}", mine, FIGURES)
    every = [record.run for record in records]
    return [*found, *sender_lag(every), *headline(records), *verdict_counts(every)]


def headline(records: Sequence[Record]) -> list[Figure]:
    found: list[Figure] = []
    middles = ratios(records, ("transaction",), "marker", latency_p50)
    tails = ratios(records, ("transaction",), "marker", latency_p99)
    for name, what, among, choose, goal in (
        ("marker_vs_transaction_p50_10ms", "p50, transaction over marker, least",
         shortest(middles), min, Goal("at least", P50_GOAL)),
        ("marker_vs_transaction_p99_10ms", "p99, transaction over marker, least",
         shortest(tails), min, Goal("at least", P99_GOAL)),
        ("marker_vs_transaction_p50_min", "p50, transaction over marker, least of all",
         middles, min, Goal("at least", P50_MIN_GOAL)),
        ("aligned_vs_marker_p50_max", "p50, aligned over marker, most of all",
         ratios(records, ("aligned",), "marker", latency_p50), max, None),
        ("marker_vs_unsafe_p50_max", "p50, marker over unsafe, most of all",
         ratios(records, ("marker",), "unsafe", latency_p50), max, Goal("at most", UNSAFE_GOAL)),
    ):  # fmt: skip
        if among:
            one: Ratio[Cell] = choose(among, key=lambda ratio: ratio.value)
            said = f"{what}: {one.cell.words}"
            found.append(Figure(f"headline.{name}", "x", said, one.value, one.repeats, goal))
    for share, among in (("p50", middles), ("p99", tails)):
        what = f"{share}, transaction over marker"
        for one in among:
            name = f"{one.cell.name}.marker_vs_transaction_{share}"
            found.append(Figure(name, "x", what, one.value, one.repeats))
    return found


def shortest(among: Sequence[Ratio[Cell]]) -> list[Ratio[Cell]]:
    return [ratio for ratio in among if ratio.cell.interval_ms == SHORTEST_MS]


def held(figures: Figures, cell: Cell, protocol: str) -> str:
    """Commits of the slowest task over those that the interval asks for."""
    figure = figures.get(f"{cell.name}.{protocol}.commits_per_s")
    return "-" if figure is None else f"{figure.value * cell.interval_ms / 10:.0f} %"


COLUMNS = (
    Column("p50 (repeats)", with_range("p50_ms")),
    Column("p99 (repeats)", with_range("p99_ms")),
    Column("held", held),
)


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    """Latencies, then the headline, then every run that does not count and why."""
    title = (
        f"protocols on {plan.log}: latency in ms, {plan.repeats} repeats of {plan.measure_s:g} s"
    )
    first = "query, interval, protocol"
    console.print(systems_table(title, first, COLUMNS, plan.protocols, records, figures))
    rates = ", ".join(f"{query.upper()} {rate:,}" for query, rate in plan.rates.items())
    show_legend(
        console,
        f"events/s: {rates}; medians of the repeats, in brackets their range; held: commits per "
        "second of the slowest task over those that the interval asks for; runs: those that count",
    )
    show_summary(console, "protocols", figures)
    show_not_counted(console, records)


def draw(plan: Plan, records: Sequence[Record], figures: Sequence[Figure], path: Path) -> None:
    """How latency is spread, a panel per query and interval; only runs that count."""
    grid = (len(plan.queries), len(plan.intervals_ms))
    size = (3.6 * grid[1], 0.7 + 2.6 * grid[0])
    title = f"protocols on {plan.log}: event-time latency"
    with picture(path, title, plan.protocols, grid, size, 0.3) as (axes, colours):
        for place, cell in enumerate(plan.cells):
            counted = [r.run for r in records if r.cell == cell and r.is_counted]
            spread(axes[place // grid[1]][place % grid[1]], cell.words, counted, colours)


SUITE: Suite[Plan, Record] = Suite(
    name="protocols",
    plan_of=plan_of,
    steps=lambda plan: plan.steps,
    minutes=lambda plan: plan.minutes,
    runs=runs,
    figures=figures,
    settings=settings,
    in_file=for_file,
    show=show,
    draw=draw,
    require=require,
    is_right=lambda record: record.is_right,
)
