"""Appends over HTTP in the log suite: figures and their table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from penstock_lab.experiment.figures import Figure, Goal, middle
from penstock_lab.experiment.table import bare_table
from penstock_lab.measure.log_sizes import CLIENTS, GATEWAY_SIZES

GATEWAY_GOALS = {"100B.w200.append_per_s": Goal("at least", 5_000.0)}


def gateway_figures(records: Sequence[dict[str, Any]]) -> list[Figure]:
    """Per size and number of clients the appends per second, and the time of the slowest; then how
    soon one client is answered beside a crowd."""
    crowd = tuple(each["crowd_ms_p99"] for each in records if each["measured"] == "crowd")
    records = [each for each in records if each["measured"] == "gateway"]
    figures: list[Figure] = []
    for cell in (f"{size}.w{clients}" for size in GATEWAY_SIZES for clients in CLIENTS):
        for key, unit, words in (
            ("append_per_s", "/s", "durable appends over HTTP per second"),
            ("append_ms_p99", "ms", "one durable append over HTTP, 99 of 100"),
        ):
            repeats = tuple(float(record[cell][key]) for record in records)
            goal = GATEWAY_GOALS.get(f"{cell}.{key}")
            figures += middle(f"gateway.{cell}.{key}", unit, words, repeats, goal)
    words = "one answer beside 50 queries, 10,000 tags and 200 slow readers, 99 of 100"
    return figures + middle("gateway.crowd_ms_p99", "ms", words, crowd, Goal("at most", 50.0))


def gateway_table(figures: Sequence[Figure]) -> Table:
    """Appends over HTTP, a row for each size and number of clients."""
    by_name = {figure.name: figure for figure in figures}
    table = bare_table("log: durable appends of one row over HTTP, embedded")
    table.add_column("size, clients", no_wrap=True)
    for name in ("per s (repeats)", "ms p99"):
        table.add_column(name, justify="right", no_wrap=True)
    for size in GATEWAY_SIZES:
        for clients in CLIENTS:
            rate = by_name.get(f"gateway.{size}.w{clients}.append_per_s")
            late = by_name.get(f"gateway.{size}.w{clients}.append_ms_p99")
            if rate is None or late is None:
                continue
            table.add_row(
                f"{size}, {clients}",
                f"{rate.value:,.0f} ({min(rate.repeats):,.0f}-{max(rate.repeats):,.0f})",
                f"{late.value:,.1f}",
            )
    return table
