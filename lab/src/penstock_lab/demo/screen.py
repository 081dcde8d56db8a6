"""The screen of the demo: a live table on a terminal, a summary everywhere."""

from __future__ import annotations

from dataclasses import dataclass

from rich import box
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from penstock_lab.demo.outcome import Outcome
from penstock_lab.workloads.send import LAG_MS_P99_MAX


@dataclass(frozen=True)
class QueryMoment:
    """One query at one moment; latencies of the last few seconds."""

    name: str
    batches: int
    rows: int
    latency_ms_p50: float | None
    latency_ms_p99: float | None


@dataclass(frozen=True)
class Moment:
    """The whole demo at one moment."""

    phase: str
    left_s: float
    rows_in: int
    rows_per_s: float
    queries: tuple[QueryMoment, ...]


def live(moment: Moment) -> Panel:
    """The table that is redrawn while the demo runs."""
    table = _table("query", "batches", "committed", "p50 ms", "p99 ms")
    for query in moment.queries:
        table.add_row(
            query.name,
            f"{query.batches:,}",
            f"{query.rows:,}",
            _ms(query.latency_ms_p50),
            _ms(query.latency_ms_p99),
        )
    left = f", {moment.left_s:.0f} s left" if moment.left_s > 0 else ""
    head = Text.assemble(
        (moment.phase, "bold"),
        f"{left}\nbids in: ",
        (f"{moment.rows_per_s:,.0f}", "bold cyan"),
        f" rows/s, {moment.rows_in:,} rows so far",
    )
    foot = Text(
        "p50 and p99: age of a result when a reader outside Spark sees it, last 5 s", style="dim"
    )
    return Panel(Group(head, table, foot), title="penstock demo", box=box.ROUNDED, expand=False)


def summary(outcome: Outcome) -> Group:
    """The figures of the run, and what they mean, in a few lines."""
    table = _table("query", "batches", "committed", "p50 ms", "p99 ms", "checked", "different")
    for query in outcome.queries:
        table.add_row(
            query.name,
            f"{query.batches:,}",
            f"{query.rows_committed:,}",
            _ms(query.latency_ms_p50),
            _ms(query.latency_ms_p99),
            f"{query.rows_checked:,}",
            Text(f"{query.rows_different:,}", style="red" if query.rows_different else "green"),
        )
    sender = outcome.sender
    sent = f"rows sent: {sender.rows:,} at {outcome.rate:,}/s; sender lag p50 "
    sent += f"{sender.lag_ms_p50:.1f} ms, p99 {sender.lag_ms_p99:.1f} ms"
    meaning = "latency: from intended send time to the moment an outside reader sees the result; "
    meaning += f"of rows sent after the first {outcome.warm_up_s:.0f} s"
    lines = [sent, meaning]
    if not outcome.is_on_schedule:
        lines.append(
            f"the sender was more than {LAG_MS_P99_MAX:.0f} ms late in 1 % of its sends: the "
            "machine was too busy, and the latencies above do not count"
        )
    return Group(table, *(Text(line) for line in (*lines, *_verdict(outcome))))


def _verdict(outcome: Outcome) -> list[str]:
    if outcome.failure is None:
        checked = f"rows checked: {outcome.rows_checked:,}, batch by batch; "
        return [checked + "all equal what DuckDB computes over the same committed input"]
    sentences = [f"  {sentence}" for sentence in outcome.differences[:5]]
    return [f"FAILED: {outcome.failure}", *sentences]


def show(console: Console, outcome: Outcome) -> None:
    console.print(summary(outcome), soft_wrap=True)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place == 0 else "right", no_wrap=True)
    return table


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
