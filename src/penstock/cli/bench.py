"""`penstock bench SUITE`: measures this machine, checks the answers, prints a table."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from penstock.workloads.processes import end_on_sigterm

SUITES = {
    "floor": "What the log adds to the least a stateful micro-batch can cost.",
    "nexmark": "NEXMark's auctions and bids: stateless, joined, windowed and updating queries.",
    "linearroad": "Linear Road's position reports: a windowed self-join and aggregates.",
    "cluster": "Task events of a compute cluster: windowed aggregates, one of them sorted.",
    "ysb": "The Yahoo benchmark: ad views per campaign, campaigns looked up in Redis.",
    "sustain": "The highest rate at which a query's latency does not keep rising.",
}
Options = Callable[[Callable[..., None]], Callable[..., None]]


class Suites(click.Group):
    """Suites by name; a wrong one is answered with those there are."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in SUITES if name in self.commands]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(
                f"there is no suite {args[0]!r}; there is {', '.join(self.list_commands(ctx))}",
                ctx,
            )
        return super().resolve_command(ctx, args)


@click.group(cls=Suites)
def bench() -> None:
    """Measure this machine: what is compared runs in the same command, on the same input.

    Every run's answer is checked too; a wrong one ends the benchmark with exit code 1.
    """


def _options(*options: Options) -> Options:
    def add(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


QUICK = click.option("--quick", is_flag=True, help="Fewer and shorter runs.")
JSON = click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Write the result here."
)
FOLDER = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where the data goes: its disk is what is measured.  [the system's temporary folder]",
)
COMPARED = _options(
    QUICK,
    JSON,
    click.option(
        "--plot", "plot_file", type=click.Path(path_type=Path), help="Draw the latencies here."
    ),
    click.option("--query", "queries", multiple=True, help="Only this one; may be repeated."),
    click.option("--system", "chosen", multiple=True, help="Only this one; may be repeated."),
    click.option("--rate", type=click.IntRange(min=1), help="Events per second."),
    click.option("--store", default="local", help="Checkpoints on local, remote20 or remote80."),
    FOLDER,
)


@bench.command(help=SUITES["floor"])
@QUICK
@JSON
@FOLDER
def floor(quick: bool, json_file: Path | None, folder: Path | None) -> None:
    from penstock.bench import floor as suite
    from penstock.bench.report import show, write

    end_on_sigterm()
    size = suite.QUICK if quick else suite.FULL
    console = Console(highlight=False)
    with _bar(console) as bar:
        task = bar.add_task("", total=suite.steps(size), completed=-1)

        def tell(what: str) -> None:
            bar.update(task, description=what, advance=1)

        found, figures = suite.run(size, folder or Path(tempfile.gettempdir()), tell)
    show(console, f"floor, {size.repeats} repeats", figures)
    console.print(_phases_table(suite.phases(found.runs)))
    if json_file is not None:
        write(found, json_file)


@bench.command(help=SUITES["nexmark"])
@COMPARED
def nexmark(**given: Any) -> None:
    _compare("nexmark", **given)


@bench.command(help=SUITES["linearroad"])
@COMPARED
def linearroad(**given: Any) -> None:
    _compare("linearroad", **given)


@bench.command(help=SUITES["cluster"])
@COMPARED
def cluster(**given: Any) -> None:
    _compare("cluster", **given)


@bench.command(help=SUITES["ysb"])
@COMPARED
@click.option("--redis", default="redis://127.0.0.1:6379/0", show_default=True)
def ysb(**given: Any) -> None:
    _compare("ysb", **given)


@bench.command(help=SUITES["sustain"])
@QUICK
@JSON
@click.option("--query", "queries", multiple=True, help="Which; may be repeated.  [q1, q18]")
@click.option("--system", "chosen", multiple=True, help="Which; may be repeated.")
@click.option("--rate", type=click.IntRange(min=1), help="The highest rate to try.")
@click.option("--store", default="local", help="Checkpoints on local, remote20 or remote80.")
@FOLDER
def sustain(
    quick: bool,
    json_file: Path | None,
    queries: tuple[str, ...],
    chosen: tuple[str, ...],
    rate: int | None,
    store: str,
    folder: Path | None,
) -> None:
    from penstock.bench import sustain as suite

    end_on_sigterm()
    search = suite.search_of(queries, chosen, quick=quick, rate_max=rate, store=store)
    console = Console(highlight=False)
    with _bar(console) as bar:
        task = bar.add_task("", total=suite.steps(search), completed=-1)

        def tell(what: str) -> None:
            bar.update(task, description=what, advance=1)

        suite.run(search, folder or Path(tempfile.gettempdir()), tell, console, json_file)


def _compare(
    name: str,
    *,
    quick: bool,
    json_file: Path | None,
    plot_file: Path | None,
    queries: tuple[str, ...],
    chosen: tuple[str, ...],
    rate: int | None,
    store: str,
    folder: Path | None,
    redis: str | None = None,
) -> None:
    from penstock.bench import compare
    from penstock.bench.plan import plan_of
    from penstock.bench.suites import SUITES as KNOWN

    end_on_sigterm()
    plan = plan_of(
        KNOWN[name],
        quick=quick,
        queries=queries,
        chosen=chosen,
        rate=rate,
        store=store,
        redis=redis,
    )
    console = Console(highlight=False)
    with _bar(console) as bar:
        task = bar.add_task("", total=compare.steps(plan), completed=-1)

        def tell(what: str) -> None:
            bar.update(task, description=what, advance=1)

        where = folder or Path(tempfile.gettempdir())
        is_right = compare.run(plan, where, tell, console, json_file, plot_file, done=bar.stop)
    if not is_right:
        raise SystemExit(1)


def _bar(console: Console) -> Progress:
    """Time left on a terminal, nothing in a pipe."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _phases_table(phases: dict[str, Any]) -> Table:
    table = Table(
        title="where a batch's time goes, ms (medians)",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    table.add_column("phase")
    for system in ("spark", "penstock"):
        table.add_column(system, justify="right")
    for phase, by_system in phases.items():
        table.add_row(phase, *(f"{by_system.get(one, 0):,.0f}" for one in ("spark", "penstock")))
    return table
