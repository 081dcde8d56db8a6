"""`penstock bench SUITE`: measures this machine, checks the answers, prints a table."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from penstock.workloads.processes import end_on_sigterm

SUITES = {"floor": "What the log adds to the least a stateful micro-batch can cost."}


class Suites(click.Group):
    """Suites by name; a wrong one is answered with those there are."""

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


@bench.command(help=SUITES["floor"])
@click.option("--quick", is_flag=True, help="3 repeats instead of 5.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the result here.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where the data goes: its disk is what is measured.  [the system's temporary folder]",
)
def floor(quick: bool, json_file: Path | None, folder: Path | None) -> None:
    from penstock.bench import floor as suite
    from penstock.bench.report import show, write

    end_on_sigterm()
    size = suite.QUICK if quick else suite.FULL
    console = Console(highlight=False)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=suite.steps(size), completed=-1)

        def tell(what: str) -> None:
            bar.update(task, description=what, advance=1)

        found, figures = suite.run(size, folder or Path(tempfile.gettempdir()), tell)
    show(console, f"floor, {size.repeats} repeats", figures)
    console.print(_phases_table(suite.phases(found.runs)))
    if json_file is not None:
        write(found, json_file)


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
