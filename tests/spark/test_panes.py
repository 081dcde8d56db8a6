"""Panes on real Spark: the answers of every batch are Spark's own, whatever the rows hold.

Each batch is one commit. The same commits are read by a query that Spark plans and by one that is
planned by panes; what they write, count, drop and remember is compared batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.client import Client
from penstock.model.ddl import parse_ddl
from support.spark import window_runs
from support.spark.window_runs import ZONE, WindowRun

COLUMNS = "at timestamp, k string, g double, i bigint, n int, x double, d decimal(12,2), b boolean"
SCHEMA = parse_ddl(COLUMNS)
SECOND = 1_000_000
START_US = 1_700_000_000 * SECOND
EXAMPLES = 8
PANES = "panes: 12 windows per row, slide 5 s"
SUMS = (
    *("count(*)", "count(x)", "sum(i)", "sum(n)", "sum(x)", "sum(d)", "avg(i)", "avg(x)", "avg(d)"),
    *(
        "sum(cast(d as decimal(38,10)))",
        "min(x)",
        "max(x)",
        "min(d)",
        "max(at)",
        "max(b)",
        "min(i)",
    ),
    *("sum(if(b, i, null))", "sum(i) filter (where n > 0)", "count(*) filter (where b and x > 0)"),
)

Commit = list[dict[str, Any]]


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


@st.composite
def commits(draw: st.DrawFn) -> list[Commit]:
    """Commits of a stream whose event time runs on: some rows late, some keys much the heaviest."""
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
        size = draw(st.sampled_from([1, 1, 3, 20]))
        made.append(draw(st.lists(row, min_size=size, max_size=size)))
    return made


def append(client: Client, stream: str, made: list[Commit]) -> None:
    client.create(stream, COLUMNS, substreams=2, key="k")
    for rows in made:
        client.append(stream, pa.Table.from_pylist(rows, schema=SCHEMA))


def sums(rows: DataFrame) -> DataFrame:
    """Every function that panes take, with keys that may be null and windows off the minute."""
    windows = f.window("at", "60 seconds", "5 seconds", "2 seconds")
    return (
        rows.withWatermark("at", "20 seconds")
        .groupBy(windows.alias("w"), "k", "g")
        .agg(*(f.expr(each).alias(f"c{place}") for place, each in enumerate(SUMS)))
    )


class Compared:
    """Runs of one query over one stream, planned both ways; each run has its own checkpoint."""

    def __init__(self, spark: SparkSession, stream: str, folder: Path) -> None:
        self._spark, self._stream, self._folder = spark, stream, folder

    def run(self, build: Callable[[DataFrame], DataFrame], windows: str, **more: Any) -> WindowRun:
        checkpoint = str(self._folder / f"{self._stream}-{windows}")
        return window_runs.run(
            self._spark, self._stream, build, checkpoint, windows=windows, **more
        )

    def check(self, build: Callable[[DataFrame], DataFrame], **more: Any) -> WindowRun:
        """The run by panes, which was found to be Spark's in all that can be compared."""
        theirs = self.run(build, "spark", **more)
        ours = self.run(build, "panes", **more)
        assert window_runs.differences(theirs.answer, ours.answer) == []
        assert ours.progress == theirs.progress
        return ours


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(
    made=commits(),
    mode=st.sampled_from(["update", "append"]),
    zone=st.sampled_from(["UTC", "Asia/Kathmandu", "America/St_Johns"]),
)
def test_every_batch_is_answered_as_by_spark(
    spark: SparkSession,
    client: Client,
    fresh: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
    made: list[Commit],
    mode: str,
    zone: str,
) -> None:
    stream = fresh("paned")
    append(client, stream, made)
    compared = Compared(spark, stream, tmp_path_factory.mktemp("paned"))
    ours = compared.check(sums, mode=mode, settings={ZONE: zone})
    assert [note.text for note in ours.notes] == [PANES]


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


@pytest.fixture(scope="module")
def stream(client: Client) -> str:
    append(client, "paned_rows", some_commits())
    return "paned_rows"


@pytest.fixture
def compared(spark: SparkSession, stream: str, tmp_path: Path) -> Compared:
    return Compared(spark, stream, tmp_path)


def test_the_plan_aggregates_before_it_expands_and_late_rows_are_dropped_alike(
    compared: Compared,
) -> None:
    ours = compared.check(sums, mode="append")
    assert sum(state["numRowsDroppedByWatermark"] for p in ours.progress for state in p["state"])
    assert any(ours.answer.values())
    steps = [line for line in ours.plan.splitlines() if "HashAggregate" in line or "Expand" in line]
    below = [line.strip(" *():+-0123456789")[:13] for line in steps][-3:]
    assert below == ["HashAggregate", "Expand [[name", "HashAggregate"]
    assert "partial_sum" in steps[-1]
    assert "merge_sum" in steps[-3]


def windowed(rows: DataFrame, **sizes: str) -> Any:
    size = {"windowDuration": "60 seconds", "slideDuration": "5 seconds", **sizes}
    return f.window("at", **size)


def narrowed(rows: DataFrame) -> DataFrame:
    """Filters and computed columns on both sides of the windows, whose bounds are used above."""
    return (
        rows.withWatermark("at", "20 seconds")
        .select(windowed(rows), "k", (f.col("i") * 2).alias("twice"), "x")
        .where("twice > 4")
        .groupBy("window", f.upper("k").alias("key"))
        .agg(f.sum("twice").alias("total"), f.max("x").alias("x"))
        .select("window.start", "window.end", "key", "total", "x")
    )


def without_time_zone(rows: DataFrame) -> DataFrame:
    local = rows.withColumn("at", f.col("at").cast("timestamp_ntz"))
    return local.groupBy(windowed(local), "k").agg(f.sum("i").alias("i"))


def twice(rows: DataFrame) -> DataFrame:
    """Two stateful operators over windows that overlap, the second over the ends of the first."""
    first = (
        rows.withWatermark("at", "20 seconds")
        .groupBy(windowed(rows, windowDuration="10 seconds"), "k")
        .agg(f.sum("i").alias("i"))
    )
    wider = f.window(f.window_time("window"), "40 seconds", "10 seconds")
    return first.groupBy(wider).agg(f.sum("i").alias("i"), f.count("*").alias("n"))


def without_functions(rows: DataFrame) -> DataFrame:
    grouped = rows.withWatermark("at", "20 seconds").groupBy(windowed(rows), "k")
    return grouped.agg(f.lit(1).alias("n"))


def observed(rows: DataFrame) -> DataFrame:
    seen = rows.withWatermark("at", "20 seconds").observe("seen", f.count("*").alias("rows"))
    return seen.groupBy(windowed(seen)).agg(f.sum("i").alias("i"))


def text_times(rows: DataFrame) -> DataFrame:
    """Windows of a time that is computed from a text."""
    text = rows.select(f.date_format("at", "yyyy-MM-dd HH:mm:ss").alias("text"), "i")
    return text.groupBy(
        f.window(f.to_timestamp("text"), "60 seconds", "5 seconds")
    ).agg(f.sum("i").alias("i"))  # fmt: skip


@pytest.mark.parametrize(
    ("build", "mode", "texts"),
    [
        (narrowed, "update", [PANES]),
        (without_time_zone, "update", [PANES]),
        (
            twice,
            "append",
            [
                # Spark drops windows without an end before it makes the sums of the first.
                "left to Spark: the window is used before the aggregate",
                "panes: 4 windows per row, slide 10 s",
            ],
        ),
        (without_functions, "append", [PANES]),
        (observed, "update", [PANES]),
        (text_times, "complete", [PANES]),
    ],
)
def test_other_shapes_of_a_query_are_planned_by_panes_too(
    compared: Compared, build: Callable[[DataFrame], DataFrame], mode: str, texts: list[str]
) -> None:
    ours = compared.check(build, mode=mode)
    assert any(ours.answer.values())
    assert sorted(note.text for note in ours.notes) == sorted(texts)
    if build is observed:
        assert sum(p["metrics"]["seen"][0] for p in ours.progress if p["metrics"]) == 120


def test_an_aggregate_larger_than_its_memory_is_answered_alike(compared: Compared) -> None:
    """Spark's switch for tests: sort from the third row of a task on, as a full memory does."""
    fall_back = {"spark.sql.TungstenAggregate.testFallbackStartsAt": "2,3"}
    no_code = {"spark.sql.codegen.wholeStage": "false"}
    ours = compared.check(sums, settings={**fall_back, **no_code})
    assert any(ours.answer.values())
