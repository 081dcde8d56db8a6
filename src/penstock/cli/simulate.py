"""`penstock simulate`: policies and orders tried on a model of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.admission.terms import PolicyName
from penstock.cli.measures import SECONDS
from penstock.simulate.compare import Comparison, compare
from penstock.simulate.engine import simulate as run_world
from penstock.simulate.measured import read_measured
from penstock.simulate.ordering import ORDERS
from penstock.simulate.plot import draw, require_matplotlib
from penstock.simulate.presets import Request, world_of
from penstock.simulate.summary import Summary, summary_of
from penstock.simulate.traffic import SHAPES

POLICIES = tuple(policy.value for policy in PolicyName)
# Static batches as Spark has them, the papers' rules, and ours.
USUAL = (
    ("fixed", "fifo"),
    ("fixed", "fair"),
    ("asap", "fair"),
    ("zstream", "edf"),
    ("deadline", "edf"),
    ("deadline", "rdas"),
    ("auto", "edf"),
)
COLUMNS = ("p50 ms", "p95", "p99", "mean", "late", "worst", "rows/s", "busy", "err")
PERCENT_MAX = 9.99
LEGEND = (
    "p50 to mean: arrival of a row to visible, every row counts; late: rows later than their "
    "query's deadline, of all and of the worst query; rows/s: per second of batch time; busy: "
    "share of the cores' time; err: median error of predicted cut to visible"
)


@click.command()
@click.option(
    "--policy", "policies", multiple=True, type=click.Choice(POLICIES), help="May be repeated."
)
@click.option(
    "--order",
    "orders",
    multiple=True,
    type=click.Choice(ORDERS),
    help="Whose tasks run first; may be repeated.",
)
@click.option(
    "--workers",
    "worker_counts",
    multiple=True,
    default=(2,),
    show_default=True,
    type=click.IntRange(1, 1_000),
    help="May be repeated: the same queries on each.",
)
@click.option(
    "--cores", default=4, show_default=True, type=click.IntRange(1, 256), help="Of each worker."
)
@click.option("--queries", default=6, show_default=True, type=click.IntRange(1, 2_000))
@click.option("--tasks", type=click.IntRange(1, 1_000), help="Of each stage.  [a worker's cores]")
@click.option(
    "--deadline",
    "deadlines_s",
    multiple=True,
    default=("1s", "5s"),
    show_default=True,
    type=SECONDS,
    help="Given to the queries in turn; may be repeated.",
)
@click.option("--traffic", default="random", show_default=True, type=click.Choice(SHAPES))
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    help="Rows per second and query.  [by --load]",
)
@click.option(
    "--load",
    default=60.0,
    show_default=True,
    type=click.FloatRange(1, 200),
    help="Percent of the cores' time of the fewest workers.",
)
@click.option(
    "--stragglers",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 50),
    help="Percent of tasks that take four times as long.",
)
@click.option(
    "--slow-workers",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Workers on which everything takes twice as long.",
)
@click.option(
    "--seconds",
    default="60s",
    show_default=True,
    type=SECONDS,
    help="Simulated time in which rows arrive.",
)
@click.option("--seed", default=0, show_default=True, type=int)
@click.option(
    "--per-query", is_flag=True, help="A line for each query too (the file always has them)."
)
@click.option("--plot", "plot_file", type=click.Path(path_type=Path), help="Draw latencies here.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write figures here.")
@click.option(
    "--measured",
    "measured_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Compare with this run on real Spark, and simulate nothing else.",
)
def simulate(measured_file: Path | None, per_query: bool, **asked: Any) -> int:
    """Simulate queries with deadlines on a cluster, in seconds and without Spark.

    The decisions are the server's own code: when a batch is cut, how much goes into it, whose tasks
    run first. Simulated are the rows that arrive, the time that tasks take, and the cores. The same
    seed gives the same answer, and every policy meets the same traffic.

    \b
    Traffic:
      constant  the same in every append
      random    every second draws its rate, between 0 and twice the mean
      bursts    random, but ten times the rate for five seconds in the middle
      backlog   twenty seconds' rows are there before the first batch

    \b
    Does a deadline hold, and what does Spark's own trigger do in its place?
      penstock simulate --deadline 1s --policy deadline --policy fixed --order edf
    Two, four and six workers with 16 cores, as in the paper on zStream:
      penstock simulate --workers 2 --workers 4 --workers 6 --cores 16 --queries 30 --plot p.png
    Hundreds of queries, and tasks that take four times as long now and then:
      penstock simulate --queries 200 --workers 6 --cores 32 --tasks 4 --stragglers 1 --seconds 20
    Is the model right? Compare it with batches measured on Spark:
      penstock bench deadlines --quick --json run.json
      penstock simulate --measured run.json

    Without --policy and --order the pairs that the benchmark compares are run. `fixed` takes the
    deadline for its interval. Exits with 1 if --measured finds the model far off.
    """
    console = Console(highlight=False)
    if measured_file is not None:
        comparisons = [compare(run) for run in read_measured(measured_file)]
        for comparison in comparisons:
            _show_comparison(console, comparison)
        if asked["json_file"] is not None:
            _write(asked["json_file"], {"comparisons": comparisons})
        return 0 if all(comparison.is_close for comparison in comparisons) else 1
    if asked["plot_file"] is not None:
        require_matplotlib()
    request = _request(asked)
    pairs = _pairs(asked["policies"], asked["orders"])
    runs = []
    with console.status("simulating") as status:
        for run in _runs(request, asked["worker_counts"], pairs):
            runs.append(run)
            status.update(f"simulated {run.system} on {run.workers} workers")
    title = _title(request)
    console.print(_table(title, runs, per_query))
    console.print(Text(LEGEND, "dim"), soft_wrap=True)
    _say_what_is_left(console, runs)
    if asked["json_file"] is not None:
        _write(asked["json_file"], {"request": request, "runs": runs})
    if asked["plot_file"] is not None:
        draw(asked["plot_file"], title, runs)
    return 0


def _request(asked: dict[str, Any]) -> Request:
    """The rate is that of the smallest cluster, so that more workers have less to do."""
    request = Request(
        workers=min(asked["worker_counts"]),
        cores_per_worker=asked["cores"],
        queries=asked["queries"],
        tasks=asked["tasks"],
        deadlines_ms=tuple(seconds * 1000 for seconds in asked["deadlines_s"]),
        traffic=asked["traffic"],
        rate=asked["rate"],
        load=asked["load"] / 100,
        seconds=asked["seconds"],
        seed=asked["seed"],
        stragglers=asked["stragglers"] / 100,
        slow_workers=asked["slow_workers"],
    )
    return replace(request, rate=world_of(request).queries[0].traffic.rate)


def _pairs(policies: Sequence[str], orders: Sequence[str]) -> list[tuple[str, str]]:
    if not policies and not orders:
        return list(USUAL)
    return [(policy, order) for policy in policies or ("deadline",) for order in orders or ("edf",)]


def _runs(
    request: Request, worker_counts: Sequence[int], pairs: Sequence[tuple[str, str]]
) -> Iterator[Summary]:
    for workers in sorted(set(worker_counts)):
        world = world_of(replace(request, workers=workers))
        for policy, order in pairs:
            chosen = world.under(PolicyName(policy), order)
            yield summary_of(chosen, policy, run_world(chosen))


def _title(request: Request) -> str:
    deadlines = ", ".join(f"{deadline_ms / 1000:g} s" for deadline_ms in request.deadlines_ms)
    return (
        f"{request.queries} queries, deadline {deadlines}, {request.traffic} traffic of "
        f"{request.rate:,.0f} rows/s each, {request.seconds:g} s, "
        f"{request.cores_per_worker} cores a worker, seed {request.seed}"
    )


def _table(title: str, runs: Sequence[Summary], per_query: bool) -> Table:
    table = _bare_table(title)
    table.add_column("policy/order", no_wrap=True)
    for name in COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    for workers in sorted({run.workers for run in runs}):
        here = [run for run in runs if run.workers == workers]
        table.add_row(Text(f"{workers} workers", "bold"))
        for run in here:
            is_last = run is here[-1] and not per_query
            table.add_row(
                f"  {run.system}",
                *(f"{ms:,.0f}" for ms in (run.p50_ms, run.p95_ms, run.p99_ms, run.mean_ms)),
                _percent(run.miss_ratio),
                _percent(run.worst_miss_ratio),
                _thousands(run.throughput),
                f"{run.busy_share:.0%}",
                "-" if run.prediction_error is None else _percent(run.prediction_error),
                end_section=is_last,
            )
            for query in run.queries if per_query else ():
                figures = (query.p50_ms, query.p95_ms, query.p99_ms, query.mean_ms)
                table.add_row(
                    Text(f"    {query.name}", "dim"),
                    *(f"{ms:,.0f}" for ms in figures),
                    _percent(query.miss_ratio),
                    "",
                    _thousands(query.throughput),
                )
    return table


def _thousands(number: float) -> str:
    """A number in four places, so that a line fits on a narrow terminal."""
    return f"{number / 1000:,.0f}k" if number >= 10_000 else f"{number:,.0f}"


def _percent(share: float) -> str:
    """A share in five places at most."""
    if share >= PERCENT_MAX:
        return f">{PERCENT_MAX:.0%}"
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _say_what_is_left(console: Console, runs: Sequence[Summary]) -> None:
    """A run that never caught up has rows without a latency: its percentiles flatter it."""
    for run in runs:
        if run.rows_never_visible:
            sentence = (
                f"{run.system} on {run.workers} workers: {run.rows_never_visible:,} rows were not "
                f"visible when it was given up after {run.ended_at_s:,.0f} s; the rate is more "
                "than it sustains"
            )
            console.print(Text(sentence, "yellow"), soft_wrap=True)


def _show_comparison(console: Console, comparison: Comparison) -> None:
    table = _bare_table(comparison.title)
    table.add_column("query", no_wrap=True)
    for name in ("", "p50 ms", "p95", "mean", "late", "cut to visible", "error"):
        table.add_column(name, justify="right", no_wrap=True)
    for query in comparison.queries:
        for name, figures in (("measured", query.measured), ("simulated", query.simulated)):
            is_measured = figures is query.measured
            table.add_row(
                query.name if is_measured else "",
                name,
                *(f"{ms:,.0f}" for ms in (figures.p50_ms, figures.p95_ms, figures.mean_ms)),
                f"{figures.miss_ratio:.1%}",
                f"{figures.batch_p50_ms:,.0f}",
                "" if is_measured else f"{query.batch_error:.0%}",
                end_section=not is_measured,
            )
    console.print(table)
    console.print(Text(comparison.sentence, "dim"), soft_wrap=True)


def _bare_table(title: str) -> Table:
    return Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
