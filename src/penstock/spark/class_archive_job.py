"""The job whose classes `penstock archive` keeps: `python -m penstock.spark.class_archive_job DIR`.

Queries of the usual kinds run for a few batches, so that a driver finds what it needs from its
first batch on: windows and a join over the log, a deduplication between files.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, expr, window
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.spark import jvm

BATCHES, ROWS = 3, 100
START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "id bigint, at timestamp"


def run(folder: Path) -> None:
    """Run all queries over a log of their own, and wait until the JVM has written its archive."""
    conf = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": 2}
    spark = penstock.session("local[2]", data=folder / "log", conf=conf)
    penstock.create("classes_in", SCHEMA, substreams=2, key="id")
    files = folder / "files"
    spark.range(0).selectExpr("id", "current_timestamp() as at").write.parquet(str(files))
    rows = spark.readStream.format("penstock").load("classes_in").withWatermark("at", "5 seconds")
    queries = [
        _written(_windows(rows), folder, "classes_windows", "update"),
        _written(_pairs(rows), folder, "classes_pairs", "append"),
        _between_files(spark, folder, files),
    ]
    for batch in range(BATCHES):
        times = [START + timedelta(seconds=20 * batch + row / ROWS) for row in range(ROWS)]
        penstock.append("classes_in", [{"id": row, "at": at} for row, at in enumerate(times)])
        more = spark.createDataFrame(list(enumerate(times)), SCHEMA)
        more.write.mode("append").parquet(str(files))
        for query in queries:
            query.processAllAvailable()
    for query in queries:
        query.stop()
    spark.stop()
    jvm.end()


def _windows(rows: DataFrame) -> DataFrame:
    return rows.groupBy(window("at", "10 seconds", "2 seconds"), "id").agg(count("*").alias("n"))


def _pairs(rows: DataFrame) -> DataFrame:
    other = rows.selectExpr("id as other", "at as seen")
    near = expr("id = other and seen between at and at + interval 5 seconds")
    return rows.join(other, near)


def _written(frame: DataFrame, folder: Path, stream: str, mode: str) -> StreamingQuery:
    writer = frame.writeStream.format("penstock").outputMode(mode)
    return writer.option("checkpointLocation", str(folder / "checkpoints" / stream)).start(stream)


def _between_files(spark: SparkSession, folder: Path, files: Path) -> StreamingQuery:
    rows = spark.readStream.schema(SCHEMA).parquet(str(files)).withWatermark("at", "5 seconds")
    writer = rows.dropDuplicates(["id", "at"]).writeStream.format("parquet")
    checkpoint = str(folder / "checkpoints" / "classes_files")
    return writer.option("checkpointLocation", checkpoint).start(str(folder / "unique"))


if __name__ == "__main__":
    run(Path(sys.argv[1]))
