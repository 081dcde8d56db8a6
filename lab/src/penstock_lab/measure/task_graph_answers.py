"""Answers that a task graph owes, by DuckDB, from the same events made once more.

The texts of the oracle's own answers are used, over all of the input at once: there is no batch
here, and no row is late. Beyond that, Q4's rows are numbered, so that every one of them is checked
to be there once and in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import msgspec
import pyarrow as pa

from penstock_lab.baselines.task_graph.reader import Seen
from penstock_lab.oracle.answers import EXPECTED, TRUTHS
from penstock_lab.oracle.committed import plain
from penstock_lab.queries import named
from penstock_lab.workloads.load import WORKLOADS, Load

DIFFERENCES_KEPT = 5
_NEVER_LATE = -(2**62)


class Checked(msgspec.Struct, frozen=True):
    """Rows compared, how many differ, and the first of them as sentences."""

    rows: int
    different: int
    differences: list[str] = []


def check(graph: str, load: Load, seen: Sequence[Seen]) -> Checked:
    """Compare what a reader has seen, in its order, with what the load's events give."""
    rows = [row for seen_rows in seen for row in seen_rows.rows]
    with duckdb.connect() as base:
        base.execute("set timezone = 'UTC'")
        _show_input(base, load)
        return {"q4": _check_q4, "q8": _check_q8}[graph](base, rows)


def _show_input(base: duckdb.DuckDBPyConnection, load: Load) -> None:
    """The events of the load as the views that the answers are written over."""
    drawn = WORKLOADS[load.workload].draw(load)(load.first, load.schedule().rows_before(load.ticks))
    for stream in load.streams:
        rows = plain(pa.Table.from_batches([drawn[stream][0]]))
        base.register(f"sent_{stream}", rows)
        base.execute(
            f"create view {stream} as select *, 0 as sent_at, 0 as _batch, "
            f"{_NEVER_LATE} as _late_us from sent_{stream}"
        )
    base.execute("create macro closed_in(end_us) as 0")
    base.execute("set variable upto = 0")


def _check_q4(base: duckdb.DuckDBPyConnection, rows: Sequence[Any]) -> Checked:
    """The last mean of each category, and that its rows are numbered 1, 2, 3, …"""
    last: dict[int, tuple[float, int]] = {}
    different: list[str] = []
    for category, mean, number, _ in rows:
        before = last.get(category, (0.0, 0))[1]
        if number != before + 1:
            different.append(f"category {category}: row {number} came after row {before}")
        last[category] = (mean, number)
    truth = dict(base.sql(TRUTHS["q4"](named("q4"))).fetchall())
    for category in sorted(truth.keys() | last.keys()):
        mean = last.get(category, (None, 0))[0]
        if mean != truth.get(category):
            different.append(f"category {category}: {mean} is not {truth.get(category)}")
    return _checked(len(rows), different)


def _check_q8(base: duckdb.DuckDBPyConnection, rows: Sequence[Any]) -> Checked:
    text = EXPECTED["q8"](named("q8"))
    expected = base.sql(f"select id, name, starts_at from ({text}) order by all").fetchall()
    answer = sorted((person, name, starts_us) for person, name, starts_us, _ in rows)
    wanted = _counted(expected)
    counts = _counted(answer)
    different = [
        f"{row}: there {counts.get(row, 0)} times instead of {wanted.get(row, 0)}"
        for row in sorted(wanted.keys() | counts.keys())
        if wanted.get(row) != counts.get(row)
    ]
    return _checked(max(len(expected), len(answer)), different)


def _counted(rows: Sequence[tuple[Any, ...]]) -> Mapping[tuple[Any, ...], int]:
    counts: dict[tuple[Any, ...], int] = {}
    for row in rows:
        counts[row] = counts.get(row, 0) + 1
    return counts


def _checked(rows: int, different: list[str]) -> Checked:
    return Checked(rows, len(different), different[:DIFFERENCES_KEPT])
