"""Columns in Python workers on real Spark: the answers of every batch are Spark's own.

Each batch is one commit. The same commits are read by a query that Spark plans and by one whose
aggregates per pane are made by Python workers; what they write, count, drop and remember, and the
watermark of every batch, are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import penstock
from penstock.client import Client
from penstock.devices.operators.expressions import Call, Column, Literal
from penstock.devices.pipeline import Filter, Pipeline, Project
from support.spark import window_runs
from support.spark.plain_windows import NO_DATA
from support.spark.python_workers import WorkerKiller
from support.spark.window_rows import (
    Commit,
    append,
    append_commit,
    commits,
    commits_with_empty_batches,
    some_commits,
    sums,
)
from support.spark.window_runs import DEVICES, ZONE, Compared

EXAMPLES = 5
STEPS = "event_time, filter, project, aggregate"
EXPAND = "spark.penstock.devices.expand"
EXPANDED_STEPS = "cpu: event_time, filter, expand, aggregate"


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
    device: str,
    made: list[Commit],
    mode: str,
    zone: str,
) -> None:
    stream = fresh("columnar")
    append(client, stream, made)
    compared = Compared(spark, stream, tmp_path_factory.mktemp("columnar"), DEVICES, device)
    ours = compared.check(sums, mode=mode, settings={ZONE: zone})
    assert [note.text for note in ours.device_notes] == [f"{device}: {STEPS}"]


@pytest.fixture(scope="module")
def stream(client: Client) -> str:
    append(client, "columnar_rows", some_commits())
    return "columnar_rows"


@pytest.fixture
def compared(spark: SparkSession, stream: str, tmp_path: Path) -> Compared:
    return Compared(spark, stream, tmp_path, DEVICES, "cpu")


def windowed() -> Any:
    return f.window("at", "60 seconds", "5 seconds")


def narrowed(rows: DataFrame) -> DataFrame:
    """Filters and computed columns on both sides of the windows, and below the watermark."""
    return (
        rows.where("n >= 0 and coalesce(k, 'a') in ('a', 'c')")
        .withWatermark("at", "20 seconds")
        .select(windowed(), "k", (f.col("i") * 2).alias("twice"), "x", "n")
        .where("twice > 4")
        .groupBy("window", "k", f.expr("case when x > 2 then n % 2 else -1 end").alias("c"))
        .agg(
            f.sum("twice").alias("total"),
            f.sum(f.col("x").cast("decimal(8,2)")).alias("exact"),
            f.max(f.floor(f.col("x") / 3).cast("int")).alias("third"),
        )
        .select("window.start", "window.end", "k", "c", "total", "exact", "third")
    )


def divided(rows: DataFrame) -> DataFrame:
    """A division that fails in ANSI mode for rows that the conjunct before it drops: its left side
    is null or false where `n` is zero."""
    return without_watermark(rows.where("(k > 'z' or n <> 0) and 12 % n >= 0"))


def without_watermark(rows: DataFrame) -> DataFrame:
    return rows.groupBy(windowed(), "b").agg(f.avg("d").alias("d"), f.count("k").alias("n"))


def joined(rows: DataFrame) -> DataFrame:
    table = rows.sparkSession.sql("select * from values ('a', 1), ('b', 2) as t(key, level)")
    return without_watermark(rows.join(f.broadcast(table), f.col("k") == f.col("key")))


def in_capitals(rows: DataFrame) -> DataFrame:
    marked = rows.withWatermark("at", "20 seconds")
    return marked.groupBy(windowed(), f.upper("k").alias("k")).agg(f.sum("i").alias("i"))


def of_wide_decimals(rows: DataFrame) -> DataFrame:
    return sums(rows, ("sum(cast(d as decimal(38,10)))",))


def observed(rows: DataFrame) -> DataFrame:
    seen = rows.withWatermark("at", "20 seconds").observe("seen", f.count("*").alias("rows"))
    return seen.groupBy(windowed()).agg(f.sum("i").alias("i"))


def with_a_failing_constant(rows: DataFrame) -> DataFrame:
    """A constant that cannot be evaluated, in a branch that no row takes."""
    failing = "if(i in (1, cast('x' as bigint)), 1, 2)"
    return sums(rows, (f"sum(case when n > 100 then {failing} else i end)",))


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (narrowed, "cpu: filter, project, event_time, filter, project, project, aggregate"),
        (without_watermark, "cpu: filter, project, project, aggregate"),
        (divided, "cpu: filter, project, project, aggregate"),
        (in_capitals, "left to panes: upper is not among the functions of pipelines"),
        (
            of_wide_decimals,
            "left to panes: a sum of decimal(38,10) is not among the functions of pipelines",
        ),
        (observed, "left to panes: CollectMetrics stands below the aggregate"),
        (with_a_failing_constant, "left to panes: planning it failed: org.apache.spark."),
    ],
)
def test_what_translates_goes_to_workers_and_the_rest_is_named(
    compared: Compared, build: Callable[[DataFrame], DataFrame], text: str
) -> None:
    ours = compared.check(build, settings=NO_DATA)
    assert any(ours.answer.values())
    (note,) = ours.device_notes
    assert note.text == text or (text.endswith(".") and note.text.startswith(text))
    assert ("ColumnarPanes on cpu" in ours.plan) == text.startswith("cpu")


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (sums, EXPANDED_STEPS),
        (narrowed, "cpu: filter, project, event_time, filter, expand, project, aggregate"),
        (
            joined,
            "left to panes: a static table is joined, and spark.penstock.devices.expand is true",
        ),
    ],
)
def test_workers_that_make_a_row_for_every_window_answer_as_spark_does(
    compared: Compared, build: Callable[[DataFrame], DataFrame], text: str
) -> None:
    ours = compared.check(build, settings={**NO_DATA, EXPAND: "true"})
    assert any(ours.answer.values())
    assert [note.text for note in ours.device_notes] == [text]


def test_the_path_changes_at_every_restart_of_one_checkpoint(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    """One checkpoint by Spark, workers, panes, workers that make a row for every window, and Spark
    again, against one run by Spark."""
    stream, made = fresh("columnar"), some_commits(8)
    append(client, stream, [])
    compared = Compared(spark, stream, tmp_path, DEVICES, "cpu")
    answer: window_runs.Answer = {}
    steps = []
    for number, device in enumerate(("spark", "cpu", "panes", "cpu", "spark")):
        if number < 4:
            for rows in made[2 * number : 2 * number + 2]:
                append_commit(client, stream, rows)
        settings = {EXPAND: str(number == 3).lower()}
        ran = compared.run(sums, device, checkpoint="switched", mode="append", settings=settings)
        answer |= ran.answer
        steps.append([note.text for note in ran.device_notes])
    assert steps == [[], [f"cpu: {STEPS}"], [], [EXPANDED_STEPS], []]
    whole = compared.run(sums, "spark", checkpoint="whole", mode="append")
    written = [window_runs.rows_written(each) for each in (answer, whole.answer)]
    assert written[0] == written[1] != []
    checkpoints = [tmp_path / f"{stream}-{name}" for name in ("switched", "whole")]
    state = [window_runs.state_description(checkpoint) for checkpoint in checkpoints]
    assert state[0] == state[1] != {}


def test_a_worker_that_is_killed_in_a_batch_changes_no_answer(
    spark: SparkSession, compared: Compared
) -> None:
    theirs = compared.run(sums, "spark")
    with WorkerKiller(spark) as killer:
        ours = compared.run(sums, "cpu")
    assert killer.killed
    assert killer.has_failed_task
    assert window_runs.differences(theirs.answer, ours.answer) == []
    assert ours.progress == theirs.progress


def mapped(rows: DataFrame) -> DataFrame:
    """A function of the user's: what workers need of it travels with it."""

    def sized(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sizes = pa.array([batch.num_rows] * batch.num_rows, pa.int64())
            yield pa.record_batch([batch.column("i"), sizes], ["i", "size"])

    return rows.select("i", "k").mapInArrow(sized, "i bigint, size bigint").select("i")


def piped(rows: DataFrame) -> DataFrame:
    is_set = Call("equal", "boolean", (Column(7), Literal("boolean", True)))
    steps = (Filter(is_set), Project((Column(1), Call("abs", "bigint", (Column(3),)))))
    return penstock.columnar(rows, Pipeline(steps), "k string, i bigint")


def piped_as_its_steps_tell(rows: DataFrame) -> DataFrame:
    """Without a schema: columns that pass keep their names, what is computed has its place."""
    both = (Column(1), Column(0), Call("abs", "bigint", (Column(3),)))
    made = penstock.columnar(rows, Pipeline((Project(both),)))
    assert made.dtypes == [("k", "string"), ("at", "timestamp"), ("c2", "bigint")]
    return made


@pytest.mark.parametrize("build", [mapped, piped, piped_as_its_steps_tell])
def test_a_function_of_ones_own_over_the_log_gets_its_columns(
    compared: Compared, build: Callable[[DataFrame], DataFrame]
) -> None:
    """By default, too; a setting for paths through Spark leaves it to Spark."""
    theirs, *ours = (compared.run(build, name, mode="append") for name in ("panes", "auto", "cpu"))
    assert any(theirs.answer.values())
    assert "ColumnarMap" not in theirs.plan
    for ran in ours:
        assert window_runs.differences(theirs.answer, ran.answer) == []
        assert ran.progress == theirs.progress
        assert "ColumnarMap" in ran.plan
