"""`penstock explain`: why batches of a query were cut when they were, and how they fared."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from penstock.cli.address import client_of, server_options
from penstock.cli.plan_lines import PLAN_COLUMNS, devices_summary, note_lines, plan_rows
from penstock.devices.calibration_files import read_calibration
from penstock.devices.what_if import device_sentences
from penstock.model.admission_answers import AdmissionDecision, QueryAdmission

MEGABYTE = 1e6
COLUMNS = ("ago", "decision", "rows", "oldest", "left", "predicted", "measured", "reason")


@click.command()
@click.argument("query_name", metavar="QUERY")
@click.option("--last", default=20, show_default=True, help="Decisions to show, newest first.")
@click.option("--json", "as_json", is_flag=True, help="All that is known, as one JSON object.")
@click.option(
    "--calibration",
    "calibration_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A calibration of another machine: say what its GPU would change here.",
)
@server_options
def explain(
    query_name: str, last: int, as_json: bool, calibration_file: Path | None, **server: Any
) -> None:
    """Explain the last decisions on a query's batches: QUERY is its name or id.

    Shown are what was buffered, what was predicted and then measured (from cut to visible), the
    time that was left to the deadline, and the reason; above them the floor, which is the least
    that a batch takes, and the shortest deadline that can hold at the present rate. If its batches
    are planned: path, device and reason for each operation, and what was expected and measured,
    summed over the tasks of a batch. How the plug-in planned each stateful operator, or why it
    left it to Spark, is below the decisions. A query without a deadline or a policy does not ask
    the server, so that only penstock.plan_notes(query) in its own driver has these notes.

    \b
    Example: penstock explain hot_items
    """
    explained = client_of(**server).explain(query_name)
    if as_json:
        click.echo(msgspec.json.encode(explained).decode())
        return
    for line in summary(explained):
        click.echo(line)
    _print_table(COLUMNS, (cells(decision) for decision in explained.decisions[:last]))
    if explained.plan_notes:
        for line in ("", "plan:", *note_lines(explained.plan_notes)):
            click.echo(line)
    devices = explained.devices
    if devices is not None:
        for line in ("", *devices_summary(devices)):
            click.echo(line)
        _print_table(PLAN_COLUMNS, plan_rows(devices.plans[:last]))
    if calibration_file is not None:
        calibration = read_calibration(calibration_file)
        for line in device_sentences(calibration, devices):
            click.echo(line)


def _print_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    table = Table(*columns, show_edge=False, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else 200
    Console(width=width, highlight=False).print(table)


def summary(explained: QueryAdmission) -> list[str]:
    """The figures of a query, a line each."""
    deadline = _ms(explained.deadline_ms)
    if explained.deadline_ms is not None:
        deadline += f" (set by: {explained.deadline_set_by})"
    slack = f"{_ms(explained.slack_ms_p50)} at the median, {_ms(explained.slack_ms_p5)} at the 5th"
    errors = [f"{name} {100 * error:.0f} %" for name, error in explained.errors.items()]
    cost = f"{_ms(explained.fixed_ms)} + {_ms(explained.ms_per_1000_rows)} for each 1,000 rows"
    name = explained.name or explained.query
    unasked = f"{explained.moments_unasked} moments passed while Spark asked nothing"
    late = f"{_ms(explained.moment_late_ms_p95)} after the planned moment, 95th percentile"
    lines = [
        f"query {name}: policy {explained.policy}, importance {explained.importance:g}",
        f"deadline {deadline}",
        f"batches {explained.batches}, late {explained.batches_late}, slack {slack} percentile",
        f"floor {_ms(explained.floor_ms)}, a batch costs {cost}",
        f"shortest deadline that holds at this rate: {_ms(explained.sustainable_ms)}",
        _backlog(explained),
        f"cut {late}; {unasked}",
        f"median error of predictions: {', '.join(errors) or 'none measured yet'}",
    ]
    if explained.warning is not None:
        lines.append(f"warning: {explained.warning}")
    return lines


def _backlog(explained: QueryAdmission) -> str:
    """What arrives and waits, in rows or else in what the sources tell."""
    if explained.rows_waiting is not None:
        growth = f"{explained.backlog_rows_per_s or 0.0:+.0f} rows/s"
        return (
            f"{explained.rows_per_s or 0.0:.0f} rows/s arrive, {explained.rows_waiting} wait: "
            f"{growth}"
        )
    files = "" if explained.files_waiting is None else f" in {explained.files_waiting} files"
    if explained.bytes_waiting is not None:
        growth = f"{(explained.backlog_bytes_per_s or 0.0) / MEGABYTE:+.1f} MB/s"
        return (
            f"{(explained.bytes_per_s or 0.0) / MEGABYTE:.1f} MB/s arrive, "
            f"{explained.bytes_waiting / MEGABYTE:.1f} MB{files} wait: {growth}"
        )
    if explained.files_waiting is not None:
        return f"{explained.files_waiting} files wait"
    return "the sources do not tell how much waits"


def cells(decision: AdmissionDecision) -> tuple[str, ...]:
    """One decision as the cells of a table."""
    act = "cut" if decision.is_cut else "wait"
    if decision.ends_in_ms is not None and decision.ends_in_ms > 0:
        act += f" {decision.ends_in_ms:.0f} ms"
    return (
        f"{decision.ago_ms / 1000:.1f} s",
        act,
        _size(decision),
        f"{decision.oldest_age_ms:.0f} ms",
        _ms(decision.left_ms),
        _ms(decision.predicted_ms),
        _ms(decision.measured_ms),
        decision.reason,
    )


def _size(decision: AdmissionDecision) -> str:
    if decision.rows is not None:
        return str(decision.rows)
    return "?" if decision.bytes is None else f"{decision.bytes / MEGABYTE:.1f} MB"


def _ms(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds:.0f} ms"
