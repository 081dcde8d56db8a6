"""Queries that go from us to Spark and back; as a script, one is run by Spark without the jar.

Arguments are the folder of its input, one file a batch, its checkpoint and its name; printed is the
answer of every batch as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from support.spark.three_queries.job import CHANGELOG, PROVIDER, STOCK

SCHEMA = "at timestamp, k string, i bigint, x decimal(8,2)"
SECOND = 1_000_000
FIRST_US = 1_700_000_000 * SECOND
NO_DATA = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
CONF = {
    **NO_DATA,
    PROVIDER: STOCK,
    CHANGELOG: "true",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    JOIN_FORMAT: "3",
    "spark.ui.enabled": "false",
}


def write_part(folder: Path, number: int) -> None:
    """The file of one batch: event time runs on by 25 s, and a row in ten is later than allowed."""
    folder.mkdir(exist_ok=True)
    seconds = [number * 25 + n % 30 - (120 if n % 10 == 9 else 0) for n in range(60)]
    rows = pa.table(
        {
            "at": pa.array([FIRST_US + second * SECOND for second in seconds]).cast(
                pa.timestamp("us", "UTC")
            ),
            "k": pa.array([None if n % 7 == 3 else "abc"[n % 3] for n in range(60)]),
            "i": pa.array([n * (number + 1) for n in range(60)]),
            "x": pa.array([Decimal(n) for n in range(60)], pa.decimal128(8, 2)),
        }
    )
    part = folder / f"part-{number}.parquet"
    pq.write_table(rows, folder / f".part-{number}")
    # A file source takes files in the order of their times.
    os.utime(folder / f".part-{number}", (1_700_000_000 + number,) * 2)
    (folder / f".part-{number}").rename(part)


def read(spark: SparkSession, folder: Path, query_name: str = "windows") -> DataFrame:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return QUERIES[query_name].frame(reader.parquet(str(folder)))


def sums(rows: DataFrame) -> DataFrame:
    """Sums over sliding windows, their bounds as numbers."""
    window = f.window("at", "60 seconds", "5 seconds")
    totals = (f.sum("i").alias("i"), f.avg("x").cast("string").alias("x"), f.count("*").alias("n"))
    return (
        rows.withWatermark("at", "20 seconds")
        .groupBy(window, "k")
        .agg(*totals)
        .select(f.unix_micros("window.start"), f.unix_micros("window.end"), "k", "i", "x", "n")
    )


def pairs(rows: DataFrame) -> DataFrame:
    """Rows joined with others of their key within an interval, or alone once that is over."""
    timed = rows.withWatermark("at", "20 seconds").select("at", "k", "x", "i")
    left = timed.where("x % 2 = 0").select("at", "k", "i")
    right = timed.where("x % 2 = 1").select(
        f.col("at").alias("other_at"), f.col("k").alias("other_k"), f.col("i").alias("other_i")
    )
    within = "other_at between at - interval 5 seconds and at + interval 5 seconds"
    joined = left.join(right, f.expr(f"k = other_k and {within}"), "left_outer")
    return joined.select(f.unix_micros("at"), "k", "i", f.unix_micros("other_at"), "other_i")


class PlainQuery(NamedTuple):
    """A query over the files, and its output mode."""

    frame: Callable[[DataFrame], DataFrame]
    mode: str


QUERIES = {"windows": PlainQuery(sums, "update"), "join": PlainQuery(pairs, "append")}


def main(folder: str, checkpoint: str, query_name: str) -> None:
    builder: SparkSession.Builder = SparkSession.builder.master("local[2]")
    for key, value in CONF.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    answer: dict[int, Any] = {}

    def keep(rows: DataFrame, batch: int) -> None:
        answer[batch] = sorted((tuple(row) for row in rows.collect()), key=repr)

    query = (
        read(spark, Path(folder), query_name)
        .writeStream.outputMode(QUERIES[query_name].mode)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .foreachBatch(keep)
        .start()
    )
    query.awaitTermination()
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
