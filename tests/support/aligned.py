"""Aligned queries for tests: each gives one row for one row, so that rows of a chain can be counted
against each other at any moment.

Run as a script with one JSON argument it is a driver with two of them, one reading what the other
writes, that runs until it is killed or a query fails.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.client import Client

PROTOCOL = "spark.penstock.commit.protocol"


def numbers(first: int, count: int) -> pa.Table:
    return pa.table({"n": list(range(first, first + count))})


def stream(spark: SparkSession, name: str, rows_max: int | None = None) -> DataFrame:
    reader = spark.readStream.format("penstock")
    if rows_max is not None:
        reader = reader.option("maxRowsPerTrigger", rows_max)
    return reader.load(name)


def doubled(spark: SparkSession, name: str, rows_max: int | None = None) -> DataFrame:
    return stream(spark, name, rows_max).select((f.col("n") * 2).alias("n"))


def once(spark: SparkSession, name: str) -> DataFrame:
    """Each number once: with state, which a repeated row would meet."""
    return stream(spark, name).dropDuplicates(["n"])


def started(frame: DataFrame, output: str, checkpoint: Path) -> StreamingQuery:
    writer = frame.writeStream.format("penstock").outputMode("append").queryName(output)
    return writer.option("checkpointLocation", str(checkpoint)).start(output)


def shown(client: Client, *names: str) -> list[int]:
    """How many rows of the streams anyone sees, all at one moment."""
    rows = {each.name: each.rows for each in client.streams()}
    return [rows.get(name, 0) for name in names]


def main(job: dict[str, Any]) -> int:
    conf = {**job["conf"], PROTOCOL: "aligned"}
    spark = penstock.session(job["master"], url=job["url"], token=job["token"], conf=conf)
    spark.sparkContext.setLogLevel("WARN")
    folder, rows = Path(job["folder"]), job["rows_per_batch"]
    queries = [
        started(doubled(spark, "outer", rows), "mid", folder / "doubled"),
        started(once(spark, "mid"), "out", folder / "once"),
    ]
    while all(query.isActive for query in queries):
        time.sleep(0.05)
    print([str(query.exception()) for query in queries])
    return 3


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
