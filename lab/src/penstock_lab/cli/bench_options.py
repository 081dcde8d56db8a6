"""Options of the benchmark commands, and the bar that says how long it takes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Tell = Callable[[str], None]
ONLY = "Only this one; may be repeated."


def option(*names: str, **attributes: Any) -> click.Option:
    return click.Option(names, **attributes)


def several(flag: str, name: str, words: str = ONLY, **attributes: Any) -> click.Option:
    """An option that may be repeated."""
    return option(flag, name, multiple=True, help=words, **attributes)


def rate(words: str = "Events per second.") -> click.Option:
    return option("--rate", type=click.IntRange(min=1), help=words)


def plot(words: str) -> click.Option:
    return option("--plot", "plot_file", type=click.Path(path_type=Path), help=words)


QUICK = option("--quick", is_flag=True, help="Fewer and shorter runs.")
JSON = option("--json", "json_file", type=click.Path(path_type=Path), help="Write the result here.")
FOLDER = option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where the data goes: its disk is what is measured.  [the system's temporary folder]",
)
REPEATS = option("--repeats", type=click.IntRange(min=1), help="In place of 3 quick, 5 in full.")
STORE = option("--store", default="local", help="Checkpoints on local, remote20 or remote80.")
REDIS = option("--redis", default="redis://127.0.0.1:6379/0", show_default=True)
COMPARED = (
    QUICK,
    JSON,
    plot("Draw the latencies here."),
    several("--query", "queries"),
    several("--system", "chosen"),
    rate(),
    REPEATS,
    STORE,
    FOLDER,
)


def place(folder: Path | None) -> Path:
    """The folder in which a suite makes its own."""
    return folder or Path(tempfile.gettempdir())


@contextmanager
def step_teller(console: Console, steps: int) -> Iterator[tuple[Tell, Callable[[], None]]]:
    """A call for every step as it begins, and one that takes the bar away before a table.

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

        def tell(words: str) -> None:
            bar.update(task, description=words, advance=1)

        yield tell, bar.stop
