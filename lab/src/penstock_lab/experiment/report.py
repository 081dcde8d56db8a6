"""A result file that a stranger can read, and the table that goes with it.

The file is `{"suite", "machine", "versions", "settings", "runs", "figures": {name: number}}`; the
figures that sum a suite up are named `headline.…`.
"""

from __future__ import annotations

import operator
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import msgspec
import psutil
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.errors import Bug

PACKAGES = ("penstock", "pyspark", "pyarrow", "numpy", "lmdb", "duckdb")


class Goal(msgspec.Struct, frozen=True):
    """What a figure is held against."""

    sign: Literal["at most", "under", "over", "at least"]
    bound: float

    def is_met(self, value: float) -> bool:
        compare = {
            "at most": operator.le,
            "under": operator.lt,
            "over": operator.gt,
            "at least": operator.ge,
        }
        return bool(compare[self.sign](value, self.bound))

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:g}"


class Figure(msgspec.Struct, frozen=True):
    """A number of the result, and what each repeat alone gives, to show their spread."""

    name: str
    unit: str
    what: str
    value: float
    repeats: tuple[float, ...] = ()
    goal: Goal | None = None

    @property
    def spread(self) -> str:
        if len(self.repeats) < 2:
            return ""
        low, high = (f"{one:,.{self.places}f}" for one in (min(self.repeats), max(self.repeats)))
        return f"{low} to {high}"

    @property
    def places(self) -> int:
        """How many digits say something: a ratio lives near 1."""
        return 2 if self.unit == "x" else 1


class Result(msgspec.Struct, frozen=True):
    """What a suite found; `figures` by name is what a machine compares."""

    suite: str
    machine: dict[str, Any]
    versions: dict[str, str]
    settings: dict[str, Any]
    runs: list[dict[str, Any]]
    figures: dict[str, float]


def result(
    suite: str, settings: dict[str, Any], runs: list[dict[str, Any]], figures: Sequence[Figure]
) -> Result:
    """Refuses two figures of one name: the second would hide the first."""
    by_name = {figure.name: round(figure.value, 3) for figure in figures}
    if len(by_name) < len(figures):
        raise Bug(f"suite {suite} names a figure twice: {sorted(by_name)}", code="bug")
    return Result(suite, machine(), versions(), settings, runs, by_name)


def machine() -> dict[str, Any]:
    """What the figures depend on and a reader cannot know."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
    }


def versions() -> dict[str, str]:
    found = {name: metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **found}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def write(found: Result, path: Path) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")


def verdict(figure: Figure) -> Text:
    """Whether the goal is met; where the repeats disagree, in how many of them."""
    if figure.goal is None:
        return Text("")
    is_met = figure.goal.is_met(figure.value)
    word = Text("met", style="green") if is_met else Text("missed", style="red")
    agreeing = sum(figure.goal.is_met(value) is is_met for value in figure.repeats)
    if agreeing < len(figure.repeats):
        word = Text(f"{word.plain} in {agreeing} of {len(figure.repeats)}", style="yellow")
    return word


def bare_table(title: str) -> Table:
    """A table of figures: a line under its head, and nothing else around it."""
    return Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )


def figures_table(title: str, figures: Sequence[Figure]) -> Table:
    """The figures for people: value, spread of the repeats, goal and whether it is met."""
    table = bare_table(title)
    table.add_column("figure", no_wrap=True)
    for name in ("value", "repeats", "goal", ""):
        # Where it is narrow, a verdict in many words takes two lines rather than lose one.
        table.add_column(name, justify="right", no_wrap=name != "")
    for figure in figures:
        table.add_row(
            figure.name,
            f"{figure.value:,.{figure.places}f} {figure.unit}",
            figure.spread,
            str(figure.goal or ""),
            verdict(figure),
        )
    return table


def show(console: Console, title: str, figures: Sequence[Figure]) -> None:
    """The table, and what each figure is in a line of its own, so that nothing is cut off."""
    console.print(figures_table(title, figures))
    for figure in figures:
        console.print(f"{figure.name}: {figure.what}", style="dim", soft_wrap=True)
    console.print()
