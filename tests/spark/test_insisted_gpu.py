"""Queries that insist on the GPU, on real Spark: they fail where any of it would run elsewhere.

Most are refused while they are planned, before a worker is asked, so that it does not matter
whether this machine has a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.client import Client
from support.spark import window_runs
from support.spark.hidden_gpus import hidden_gpus
from support.spark.plain_windows import NO_DATA
from support.spark.window_rows import append, some_commits, sums
from support.spark.window_runs import DEVICES, SETTING, Compared

REMEDY = "set it to auto, panes or cpu"
NO_PANES = "it has no aggregate over windows that workers could make"


@pytest.fixture(scope="module")
def stream(client: Client) -> str:
    append(client, "insisted_rows", some_commits())
    return "insisted_rows"


@pytest.fixture
def compared(spark: SparkSession, stream: str, tmp_path: Path) -> Compared:
    return Compared(spark, stream, tmp_path, DEVICES, "gpu")


@pytest.fixture
def _hidden(spark: SparkSession) -> Iterator[None]:
    with hidden_gpus(spark):
        yield


def in_capitals(rows: DataFrame) -> DataFrame:
    return sums(rows.withColumn("k", f.upper("k")))


def with_a_failing_constant(rows: DataFrame) -> DataFrame:
    """A constant that cannot be evaluated, in a branch that no row takes."""
    failing = "if(i in (1, cast('x' as bigint)), 1, 2)"
    return sums(rows, (f"sum(case when n > 100 then {failing} else i end)",))


def joined_with_a_large_table(rows: DataFrame) -> DataFrame:
    """A table of more bytes than are sent to workers."""
    table = rows.sparkSession.range(200_000).selectExpr("concat('none', id) key", "id level")
    return sums(rows.join(f.broadcast(table), f.col("k") == f.col("key"), "left"))


def filtered(rows: DataFrame) -> DataFrame:
    return rows.where("n > 0").select("k", "i")


def by_key(rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").agg(f.sum("i").alias("i"))


@pytest.mark.parametrize(
    ("build", "settings", "reason"),
    [
        (in_capitals, {}, "upper is not among the functions of pipelines"),
        (with_a_failing_constant, {}, "planning it failed: org.apache.spark."),
        (joined_with_a_large_table, {}, "the table of a join is larger than 4 MB"),
        (sums, {SETTING: "spark"}, NO_PANES),
        (by_key, {}, NO_PANES),
        (filtered, {}, NO_PANES),
    ],
)
def test_a_query_that_insists_on_the_gpu_fails_where_spark_would_run_it(
    compared: Compared,
    build: Callable[[DataFrame], DataFrame],
    settings: dict[str, str],
    reason: str,
) -> None:
    mode = "append" if build is filtered else "update"
    with pytest.raises(StreamingQueryException, match="no_device") as refused:
        compared.run(build, "gpu", settings={**NO_DATA, **settings}, mode=mode)
    assert reason in str(refused.value)
    assert REMEDY in str(refused.value)


def test_a_query_off_the_log_that_insists_on_the_gpu_fails(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.range(5).write.parquet(str(tmp_path / "rows"))

    def counted() -> DataFrame:
        rows = spark.readStream.schema("id bigint").parquet(str(tmp_path / "rows"))
        return rows.groupBy("id").count()

    with pytest.raises(StreamingQueryException, match=NO_PANES):
        window_runs.run_frame(
            spark, counted, str(tmp_path / "ours"), settings={DEVICES: "gpu", **NO_DATA}
        )


@pytest.mark.usefixtures("_hidden")
@pytest.mark.parametrize("options", [{}, {"policy": "asap"}])
def test_a_gpu_that_is_insisted_on_and_not_there_fails_the_query(
    spark: SparkSession, stream: str, tmp_path: Path, options: dict[str, str]
) -> None:
    with pytest.raises(StreamingQueryException, match=REMEDY):
        window_runs.run(
            *(spark, stream, sums, str(tmp_path / "ours")),
            settings={DEVICES: "gpu"},
            options=options,
        )


def test_the_tasks_that_run_at_once_on_a_machine_are_those_of_the_cores_of_the_session(
    spark: SparkSession,
) -> None:
    # Spark notes the session of the calling thread with it.
    spark.createDataFrame([(1,)], "i int")
    jvm: Any = spark._jvm
    assert jvm.org.apache.spark.sql.penstock.StreamThread.tasksOfMachine() == 2
