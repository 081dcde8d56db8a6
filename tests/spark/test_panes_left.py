"""Plans that have no panes are left to Spark and say why; the setting changes at any restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import penstock
from penstock.client import Client
from penstock.model.ddl import parse_ddl
from support.spark import plain_windows, spark_alone, window_runs
from support.spark.window_runs import SETTING

COLUMNS = "at timestamp, k string, i bigint"
MODE = "spark.penstock.commit.mode"
PANES = "panes: 12 windows per row, slide 5 s"


@pytest.fixture(scope="module")
def stream(client: Client) -> str:
    name = "left_rows"
    client.create(name, COLUMNS, substreams=2, key="k")
    rows = [
        {"at": (1_700_000_000 + n % 50) * 1_000_000, "k": "abc"[n % 3], "i": n} for n in range(60)
    ]
    client.append(name, pa.Table.from_pylist(rows, schema=parse_ddl(COLUMNS)))
    return name


def over(window: str, aggregate: str, *keys: str) -> Callable[[DataFrame], DataFrame]:
    """A query of one aggregate by windows, written in SQL."""
    return lambda rows: rows.groupBy(f.expr(window), *keys).agg(f.expr(aggregate).alias("total"))


def after(
    step: Callable[[DataFrame], DataFrame], *keys: str, value: str = "i"
) -> Callable[[DataFrame], DataFrame]:
    """The same with a step between the windows and the aggregate."""
    return lambda rows: (
        step(rows.select(f.expr(SLIDING), "k", f.expr(value).alias("v")))
        .groupBy(*keys)
        .agg(f.sum("v").alias("total"))
    )


def unchanged(rows: DataFrame) -> DataFrame:
    return rows


SLIDING = "window(at, '60 seconds', '5 seconds')"
NO_FIXED_LENGTH = "for a function whose buffer has no fixed length"
LEFT: dict[str, Callable[[DataFrame], DataFrame]] = {
    "the range of 7 s is no multiple of the slide of 2 s": over(
        "window(at, '7 seconds', '2 seconds')", "sum(i)", "k"
    ),
    "windows do not overlap": over("window(at, '10 seconds')", "sum(i)", "k"),
    "sessions have no panes": over("session_window(at, '10 seconds')", "sum(i)", "k"),
    "an expression above the windows is not deterministic": after(
        unchanged, "window", "k", value="i + rand()"
    ),
    "first is none of sum, count, avg, min, max": over(SLIDING, "first(i)", "k"),
    "try_sum is none of sum, count, avg, min, max": over(SLIDING, "try_sum(i)", "k"),
    f"it is planned as SortAggregate, {NO_FIXED_LENGTH}": over(SLIDING, "max(k)"),
    f"it is planned as ObjectHashAggregate, {NO_FIXED_LENGTH}": over(SLIDING, "collect_set(i)"),
    "the window is used in the aggregate other than as a key": over(
        SLIDING, f"max({SLIDING}.start)", "k"
    ),
    "the window is used before the aggregate": after(unchanged, "window.start"),
    "CollectMetrics stands between windows and aggregate": after(
        lambda rows: rows.observe("seen", f.count("*").alias("rows")), "window", "k"
    ),
}


def test_what_has_no_panes_is_left_to_spark_with_the_reason(
    spark: SparkSession, stream: str, tmp_path: Path
) -> None:
    """All queries at once: each only has to be planned."""
    rows = spark.readStream.format("penstock").load(stream)
    queries = {
        reason: build(rows.withWatermark("at", "1 second"))
        .writeStream.format("noop")
        .outputMode("append" if "sessions" in reason else "update")
        .option("checkpointLocation", str(tmp_path / str(number)))
        .start()
        for number, (reason, build) in enumerate(LEFT.items())
    }
    try:
        for query in queries.values():
            query.processAllAvailable()
        texts = {
            reason: [note.text for note in penstock.plan_notes(query) if note.rule == "panes"]
            for reason, query in queries.items()
        }
    finally:
        for query in queries.values():
            query.stop()
    assert texts == {reason: [f"left to Spark: {reason}"] for reason in LEFT}


def test_an_aggregate_without_windows_has_no_note(
    spark: SparkSession, stream: str, tmp_path: Path
) -> None:
    ran = window_runs.run(
        spark, stream, lambda rows: rows.groupBy("k").count(), str(tmp_path / "plain")
    )
    assert ran.notes == []


def test_the_setting_changes_at_every_restart_and_spark_alone_continues(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One checkpoint: by panes, by Spark, by panes, then Spark without the jar; against one run."""
    parts, switched, whole = (tmp_path / name for name in ("parts", "switched", "whole"))
    settings = {**plain_windows.NO_DATA, MODE: "sync"}
    answer: window_runs.Answer = {}
    described = []
    for number, windows in enumerate(("panes", "spark", "panes")):
        plain_windows.write_part(parts, number)
        ran = run_files(spark, parts, switched, windows, settings)
        said = PANES if windows == "panes" else f"left to Spark: {SETTING} is spark"
        assert [note.text for note in ran.notes] == [said]
        answer |= ran.answer
        described.append(window_runs.state_description(switched))
    plain_windows.write_part(parts, 3)
    answer |= spark_alone.continued(parts, switched)
    one_run = run_files(spark, parts, whole, "spark", settings)
    assert sorted(answer) == sorted(one_run.answer) == [0, 1, 2, 3]
    assert window_runs.differences(answer, one_run.answer) == []
    assert (
        described[0] == described[1] == described[2] == window_runs.state_description(whole) != {}
    )


def run_files(
    spark: SparkSession, parts: Path, checkpoint: Path, windows: str, settings: dict[str, str]
) -> window_runs.WindowRun:
    return window_runs.run_frame(
        spark,
        lambda: plain_windows.read(spark, parts),
        str(checkpoint),
        windows=windows,
        settings=settings,
    )
