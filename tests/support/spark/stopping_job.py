"""The job that ends in good order while the state of its last batch is not durable yet.

Run as a script with one JSON argument. It counts the rows of `input`, a file per batch, names its
query in the `status` file, stops it when Spark has counted batch `last` as done, and then Spark.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import penstock
from support.servers.processes import wait_until


def main(job: dict[str, Any]) -> int:
    builder: SparkSession.Builder = SparkSession.builder.master(job["master"])
    for key, value in job["conf"].items():
        builder = builder.config(key, value)
    spark = penstock.attach(builder).getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    rows = spark.readStream.schema("n bigint").option("maxFilesPerTrigger", 1)
    query = (
        rows.parquet(job["input"])
        .groupBy("n")
        .count()
        .writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", job["checkpoint"])
        .start()
    )
    status = Path(job["status"])
    fresh = status.with_suffix(".new")
    fresh.write_text(json.dumps({"query": query.id}))
    fresh.rename(status)
    wait_until(
        "the last batch is done",
        lambda: (
            not query.isActive or (query.lastProgress or {"batchId": -1})["batchId"] >= job["last"]
        ),
    )
    query.stop()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
