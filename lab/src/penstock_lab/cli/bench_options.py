"""What the suites share on the command line: options, and the bar that says how long it takes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Options = Callable[[Callable[..., None]], Callable[..., None]]
Tell = Callable[[str], None]


def options(*options: Options) -> Options:
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
COMPARED = options(
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
REDIS = click.option("--redis", default="redis://127.0.0.1:6379/0", show_default=True)


def place(folder: Path | None) -> Path:
    """Where a suite makes its own folder."""
    return folder or Path(tempfile.gettempdir())


@contextmanager
def told(console: Console, steps: int) -> Iterator[tuple[Tell, Callable[[], None]]]:
    """What to call with every step as it begins, and what takes the bar away before a table.

    Time left on a terminal, nothing in a pipe.
    """
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("", total=steps, completed=-1)

        def tell(what: str) -> None:
            bar.update(task, description=what, advance=1)

        yield tell, bar.stop
