"""Tables for people: figures with their goals, and systems below the cell they were run at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_lab.experiment.figures import Figure, ordered
from penstock_lab.experiment.losses import LOSSES, LOST
from penstock_lab.experiment.losses import MEANING as LOSSES_MEANING
from penstock_lab.experiment.record import Measured

Figures: TypeAlias = Mapping[str, Figure]


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
        # Where it is narrow, a verdict and a range take two lines rather than lose a word.
        is_wrapped = name in ("", "repeats")
        table.add_column(name, justify="right", no_wrap=not is_wrapped)
    for figure in figures:
        table.add_row(
            figure.name,
            f"{figure.value:,.{figure.places}f} {figure.unit}",
            figure.spread,
            str(figure.goal or ""),
            verdict(figure),
        )
    return table


def show_figures(console: Console, title: str, figures: Sequence[Figure]) -> None:
    """The table, and what each figure is in a line of its own, so that nothing is cut off."""
    console.print(figures_table(title, figures))
    for figure in figures:
        console.print(f"{figure.name}: {figure.meaning}", style="dim", soft_wrap=True)
    console.print()


def show_summary(
    console: Console, suite: str, figures: Sequence[Figure], *, explained: bool = True
) -> None:
    """Figures with a goal, and the headline; each `explained` in a line of its own."""
    summary = [figure for figure in figures if figure.is_summary]
    console.print(figures_table(f"{suite}, figures", summary))
    for figure in summary if explained else ():
        console.print(f"{figure.name}: {figure.meaning}", style="dim", soft_wrap=True)


def show_legend(console: Console, words: str) -> None:
    console.print(Text(words, "dim"), soft_wrap=True)
    console.print()


def losses_table(systems: Sequence[str]) -> Table:
    """Losses of visible results, by what fails; systems that lose the same share a row."""
    table = bare_table("lost of what was visible, by a loss of")
    table.add_column("system")
    for loss in LOSSES:
        table.add_column(loss)
    for lost in ordered(LOST[system] for system in systems):
        same = [system for system in systems if LOST[system] == lost]
        table.add_row(", ".join(same), *lost)
    return table


def show_losses(console: Console, systems: Sequence[str]) -> None:
    """Losses of each system, for the ratios above, and what is meant by them."""
    console.print(losses_table(systems))
    show_legend(console, LOSSES_MEANING)


def show_left_out(console: Console, sentences: Sequence[str]) -> None:
    """Sentences on what a quick run leaves out of the full one."""
    for sentence in sentences:
        console.print(f"not in a quick run: {sentence}", soft_wrap=True)


def show_not_counted(
    console: Console,
    records: Sequence[Measured[Any]],
    where: Callable[[Measured[Any]], str] = lambda record: f"{record.cell.words}: {record.system}",
) -> None:
    """Every run that does not count, with its reason and the first rows that differ."""
    for record in records:
        if not record.is_counted:
            which = f"{where(record)}, repeat {record.repeat + 1}"
            sentence = Text(f"does not count: {which}: {record.run.verdict}", "red")
            console.print(sentence, soft_wrap=True)
            for difference in record.run.differences:
                console.print(Text(f"  {difference}"), soft_wrap=True)


def show_short_warm_ups(console: Console, records: Sequence[Measured[Any]]) -> None:
    """Cells and systems with runs that had fewer batches in their warm-up than there were to be:
    the fewest, and in how many runs."""
    counts: dict[tuple[str, int], list[int]] = {}
    for record in records:
        run = record.run
        if record.is_counted and run.is_warm_up_short and run.warm_up_batches is not None:
            where = f"{record.cell.words}: {record.system}"
            counts.setdefault((where, run.warm_up_batches_asked), []).append(run.warm_up_batches)
    for (where, asked), batches in counts.items():
        runs = "1 run" if len(batches) == 1 else f"{len(batches)} runs"
        sentence = f"warmed up for {min(batches)} batches instead of {asked}: {where}, {runs}"
        console.print(sentence, soft_wrap=True)


@dataclass(frozen=True)
class Column:
    """A column of a table of systems: its text from the figures, for a cell and a system."""

    name: str
    text: Callable[[Figures, Any, str], str]
    is_wrapped: bool = False
    """Where it is narrow, a range goes below its value rather than be cut off."""
    min_width: int | None = None


def value(key: str) -> Callable[[Figures, Any, str], str]:
    """The figure CELL.SYSTEM.key, without its spread."""

    def text(figures: Figures, cell: Any, system: str) -> str:
        figure = figures.get(f"{cell.name}.{system}.{key}")
        return "-" if figure is None else f"{figure.value:.0f}"

    return text


def with_range(key: str) -> Callable[[Figures, Any, str], str]:
    """The figure CELL.SYSTEM.key, with the range of its repeats."""
    return lambda figures, cell, system: ranged(figures.get(f"{cell.name}.{system}.{key}"))


def ranged(figure: Figure | None, missing: str = "-", places: int = 0) -> str:
    if figure is None:
        return missing
    text = f"{figure.value:.{places}f}"
    if len(figure.repeats) < 2:
        return text
    low, high = (f"{bound:.{places}f}" for bound in (min(figure.repeats), max(figure.repeats)))
    return f"{text} ({low}-{high})"


def systems_table(
    title: str,
    first: str,
    columns: Sequence[Column],
    systems: Sequence[str],
    records: Sequence[Measured[Any]],
    figures: Sequence[Figure],
    heads: Callable[[Any], Sequence[str]] = lambda cell: [cell.words],
) -> Table:
    """A cell's systems below its `heads`, so that 80 columns hold all of it; last, in how many of
    its runs each counts."""
    by_name = {figure.name: figure for figure in figures}
    table = bare_table(title)
    table.add_column(first, no_wrap=True)
    for column in (*columns, Column("runs", lambda *_: "")):
        table.add_column(
            column.name,
            justify="right",
            no_wrap=not column.is_wrapped,
            min_width=column.min_width,
        )
    for cell in ordered(record.cell for record in records):
        here = [record for record in records if record.cell == cell]
        names = [name for name in systems if any(record.system == name for record in here)]
        for head in heads(cell):
            table.add_row(Text(head, "bold"))
        for place, system in enumerate(names):
            texts = (column.text(by_name, cell, system) for column in columns)
            counted = [record.is_counted for record in here if record.system == system]
            share = Text(f"{sum(counted)}/{len(counted)}", "" if all(counted) else "red")
            is_last = place == len(names) - 1
            table.add_row(f"  {system}", *texts, share, end_section=is_last)
    return table
