"""What the suite found, as figures and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_lab.experiment.report import Figure, Goal, figures_table
from penstock_lab.experiment.suites import key_of
from penstock_lab.suites.answers.trial import Answered


def figures(answered: Sequence[Answered]) -> list[Figure]:
    """Four for every query that was checked, and the two that sum them up."""
    found = []
    for one in answered:
        if one.error is None:
            key = key_of(one.query)
            found += [
                Figure(f"{key}.events", "", "events fed", one.events),
                Figure(f"{key}.batches", "", "batches committed", one.batches),
                Figure(f"{key}.rows", "", "rows compared", one.rows),
                Figure(f"{key}.different", "", "rows that differ", one.different),
            ]
    none = Goal("at most", 0)
    wrong = sum(one.different > 0 for one in answered)
    failed = sum(one.error is not None for one in answered)
    return [
        *found,
        Figure("headline.answers_wrong", "", "queries with a wrong answer", wrong, goal=none),
        Figure("headline.queries_failed", "", "queries that failed", failed, goal=none),
    ]


def show(
    console: Console,
    answered: Sequence[Answered],
    found: Sequence[Figure],
    skipped: Sequence[tuple[str, str]],
) -> None:
    """The table, every difference and failure in a line of its own, then the headline."""
    console.print(answers_table(answered))
    for one in answered:
        if one.error is not None:
            console.print(Text(f"failed: {key_of(one.query)}: {one.error}", "red"), soft_wrap=True)
        if one.different:
            shown = f"{one.different} of {one.rows} rows differ; the first:"
            console.print(Text(f"wrong: {key_of(one.query)}: {shown}", "red"), soft_wrap=True)
            for difference in one.differences:
                console.print(Text(f"  {difference}"), soft_wrap=True)
    for what, why in skipped:
        console.print(Text(f"{what}: skipped, because {why}", "yellow"), soft_wrap=True)
    console.print()
    headline = [one for one in found if one.name.startswith("headline.")]
    console.print(figures_table("answers, figures", headline))


def answers_table(answered: Sequence[Answered]) -> Table:
    table = Table(
        title="answers: every batch against DuckDB, the driver killed in the middle",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
        padding=(0, 0, 0, 0),
        show_edge=False,
    )
    table.add_column("query", no_wrap=True)
    for name in ("events", "batches", "rows", "different", "instance"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in answered:
        colour = "" if one.is_right else "red"
        counts = (one.batches, one.rows, one.different, one.instance)
        told = ["-"] * len(counts) if one.error else [f"{count:,}" for count in counts]
        table.add_row(Text(key_of(one.query), colour), f"{one.events:,}", *told)
    return table
