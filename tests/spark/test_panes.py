"""Panes on real Spark: the answers of every batch are Spark's own, whatever the rows hold.

Each batch is one commit. The same commits are read by a query that Spark plans and by one that is
planned by panes; what they write, count, drop and remember is compared batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.client import Client
from support.spark.window_rows import (
    SUMS,
    Commit,
    append,
    commits,
    commits_with_empty_batches,
    some_commits,
    sums,
)
from support.spark.window_runs import SETTING, ZONE, Compared

EXAMPLES = 4
PANES = "panes: 12 windows per row, slide 5 s"
WIDE = "sum(cast(d as decimal(38,10)))"


def every_sum(rows: DataFrame) -> DataFrame:
    return sums(rows, (*SUMS, WIDE))


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@example(made=commits_with_empty_batches(), mode="append", zone="UTC")
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
    compared = Compared(spark, stream, tmp_path_factory.mktemp("paned"), SETTING, "panes")
    ours = compared.check(every_sum, mode=mode, settings={ZONE: zone})
    assert [note.text for note in ours.notes] == [PANES]


@pytest.fixture(scope="module")
def stream(client: Client) -> str:
    append(client, "paned_rows", some_commits())
    return "paned_rows"


@pytest.fixture
def compared(spark: SparkSession, stream: str, tmp_path: Path) -> Compared:
    return Compared(spark, stream, tmp_path, SETTING, "panes")


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


def some_windows(rows: DataFrame) -> DataFrame:
    """Some of the windows only, and some of the rows."""
    return (
        rows.withWatermark("at", "20 seconds")
        .select(windowed(rows).alias("w"), "k", "i")
        .where("w.start > timestamp'2023-11-14 22:13:30Z' and i > 3")
        .groupBy("w", "k")
        .agg(f.sum("i").alias("i"))
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
        (some_windows, "update", [PANES]),
        (without_time_zone, "update", [PANES]),
        (
            twice,
            "append",
            [
                # Spark drops windows without an end before it makes the sums of the first.
                "panes: 2 windows per row, slide 5 s",
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
