"""Rows for queries over windows: commits of a stream with nulls, late rows and heavy keys."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock.client import Client
from penstock.model.ddl import parse_ddl

COLUMNS = "at timestamp, k string, g double, i bigint, n int, x double, d decimal(12,2), b boolean"
SCHEMA = parse_ddl(COLUMNS)
SECOND = 1_000_000
START_US = 1_700_000_000 * SECOND
# Of the zeros of a group the one that is merged first is the least and the greatest, and in which
# order partial results are merged nobody promises: their sign is taken away.
SUMS = (
    *("count(*)", "count(x)", "sum(i)", "sum(n)", "sum(x)", "sum(d)", "avg(i)", "avg(x)", "avg(d)"),
    *("min(x) + 0D", "max(x) + 0D", "min(d)", "max(at)", "max(b)", "min(i)"),
    *("sum(if(b, i, null))", "sum(i) filter (where n > 0)", "count(*) filter (where b and x > 0)"),
)
"""Every function that panes take."""

Commit: TypeAlias = list[dict[str, Any]]


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


@st.composite
def commits(draw: st.DrawFn) -> list[Commit]:
    """Commits of a stream whose event time runs on: some rows late, some keys much the heaviest,
    and some commits of which no row is in a window."""
    keys = st.sampled_from(["a", "a", "a", "a", "a", "b", "", None])
    doubles = st.sampled_from([0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), 1e9, None])
    made: list[Commit] = []
    for number in range(draw(st.integers(1, 5))):
        now_us = number * draw(st.sampled_from([1, 7, 40])) * SECOND
        # Late by up to three minutes, early by up to a slide, on the edges of windows too.
        offsets = st.one_of(
            st.integers(-5 * SECOND, 5 * SECOND),
            st.sampled_from([0, 1, -1, 5 * SECOND, -60 * SECOND, -60 * SECOND - 1]),
            st.integers(-180 * SECOND, 0),
        )
        row = st.fixed_dictionaries(
            {
                "at": maybe(offsets.map((START_US + now_us).__add__)),
                "k": keys,
                "g": doubles,
                "i": maybe(st.integers(-(2**40), 2**40)),
                "n": maybe(st.integers(-5, 5)),
                "x": doubles,
                "d": maybe(st.integers(-(10**11), 10**11).map(lambda n: Decimal(n).scaleb(-2))),
                "b": maybe(st.booleans()),
            }
        )
        size = draw(st.sampled_from([0, 1, 1, 3, 20]))
        rows = draw(st.lists(row, min_size=max(size, 1), max_size=max(size, 1)))
        made.append(rows if size else without_times(rows))
    return made


def without_times(rows: Commit) -> Commit:
    """Rows that no window takes: a batch of them is empty below the shuffle."""
    return [{**each, "at": None} for each in rows]


def commits_with_empty_batches() -> list[Commit]:
    """A few commits, the first and the third of which leave nothing."""
    made = some_commits()
    return [without_times(made[0]), made[1], without_times(made[2]), made[3]]


def some_commits(commits_number: int = 4) -> list[Commit]:
    """A few commits with nulls, a heavy key and rows later than the watermark allows."""
    return [
        [
            {
                "at": None
                if n % 13 == 5
                else START_US + (c * 25 + n - (150 if n == 7 else 0)) * SECOND,
                "k": None if n % 7 == 3 else "ab"[n % 5 == 0],
                "g": float(n % 3),
                "i": n * (c + 1),
                "n": n % 4 - 1,
                "x": n / 8,
                "d": Decimal(n).scaleb(-2),
                "b": n % 2 == 0,
            }
            for n in range(30)
        ]
        for c in range(commits_number)
    ]


def append(client: Client, stream: str, made: list[Commit]) -> None:
    """A new stream with these commits."""
    client.create(stream, COLUMNS, substreams=2, key="k")
    for rows in made:
        append_commit(client, stream, rows)


def append_commit(client: Client, stream: str, rows: Commit) -> None:
    client.append(stream, pa.Table.from_pylist(rows, schema=SCHEMA))


def sums(rows: DataFrame, functions: tuple[str, ...] = SUMS, slide: str = "5 seconds") -> DataFrame:
    """Functions by keys that may be null and windows off the minute."""
    windows = f.window("at", "60 seconds", slide, "2 seconds")
    return (
        rows.withWatermark("at", "20 seconds")
        .groupBy(windows.alias("w"), "k", "g")
        .agg(*(f.expr(each).alias(f"c{place}") for place, each in enumerate(functions)))
    )


def tumbling_sums(rows: DataFrame, functions: tuple[str, ...] = SUMS) -> DataFrame:
    """The same by windows that do not overlap."""
    return sums(rows, functions, "60 seconds")
