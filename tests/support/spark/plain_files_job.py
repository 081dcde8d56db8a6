"""The job of Spark alone that goes on with queries that had a deadline: a folder and a rate source.

Run as a script with one JSON argument. It reads what is available, writes to the `status` file what
each query has given and what is in its output, and ends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def main(job: dict[str, Any]) -> int:
    builder: SparkSession.Builder = SparkSession.builder.master(job["master"])
    for key, value in job["conf"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    folder = Path(job["folder"])
    rate = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    sources = {
        "folder": spark.readStream.schema("n bigint").json(str(folder / "input")),
        "rate": rate.select(f.col("value").alias("n")),
    }
    outcome = {name: gone_on(spark, rows, folder / name) for name, rows in sources.items()}
    Path(job["status"]).write_text(json.dumps(outcome))
    spark.stop()
    return 0


def gone_on(spark: SparkSession, rows: DataFrame, folder: Path) -> dict[str, Any]:
    """A query run to the end of its input: what it gave, and all that its output has then."""
    query = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "output"))
    )
    query.awaitTermination()
    given = [progress for progress in query.recentProgress if progress["numInputRows"]]
    output = spark.read.parquet(str(folder / "output")).collect()
    return {
        "first_batch": min((progress["batchId"] for progress in given), default=-1),
        "new_rows": sum(progress["numInputRows"] for progress in given),
        "rows": sorted(row["n"] for row in output),
    }


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
