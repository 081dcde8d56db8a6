"""Rows and texts that the engines for the operations of pipelines are compared over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

KEYS, PANES, TABLE_ROWS, TOP = 100, 10, 1_000, 100
SLIDE_US = 5_000_000
WINDOWS = 12
"""The windows of a row: 60 s, every 5."""
PARSED = ("parse CSV", "parse JSON")


def rows(count: int, seed: int = 1) -> pa.Table:
    """Rows as a stream of the log has them: a time, a text key, numbers."""
    random = np.random.default_rng(seed)
    at = 1_700_000_000_000_000 + random.integers(0, PANES * SLIDE_US, count)
    return pa.table(
        {
            "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
            "k": pa.array([f"key-{n}" for n in range(KEYS)]).take(
                pa.array(random.integers(0, KEYS, count))
            ),
            "j": random.integers(0, TABLE_ROWS * 2, count),
            "i": random.integers(0, 1_000, count),
            "x": random.random(count),
        }
    )


def lines(count: int, is_json: bool) -> pa.Table:
    """Three columns of such rows as lines of text."""
    columns = [rows(count)[name].to_pylist() for name in ("j", "x", "k")]
    form = '{{"j":{},"x":{},"k":"{}"}}' if is_json else "{},{},{}"
    return pa.table({"line": [form.format(*row) for row in zip(*columns, strict=True)]})


def input_of(operation: str, count: int) -> pa.Table:
    """The rows that an operation is tried with."""
    table = lines(count, operation == "parse JSON") if operation in PARSED else rows(count)
    return table.combine_chunks()


def static_table() -> pa.Table:
    return pa.table({"j": np.arange(TABLE_ROWS), "name": [f"name-{n}" for n in range(TABLE_ROWS)]})


def pane_starts(table: pa.Table) -> Any:
    times = np.asarray(table["at"].combine_chunks().cast(pa.int64()))
    return times - times % SLIDE_US


def window_starts(table: pa.Table) -> Any:
    return np.ravel(pane_starts(table)[:, None] - np.arange(WINDOWS) * SLIDE_US)


def joined_lines(table: pa.Table) -> Any:
    """The lines of a table as one text."""
    column = table["line"].combine_chunks()
    whole = pa.ListArray.from_arrays(pa.array([0, len(column)], pa.int32()), column)
    return pc.binary_join(whole, "\n")[0].as_buffer()
