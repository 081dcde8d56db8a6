"""The job that puts rows of files into a Delta table, killed between Delta's commit and Spark's.

Run as a script with one JSON argument: `jars` of Delta, the `folder` of input, checkpoint and
table. The kill is made by deleting `commits/0`: the rest is what it leaves. The exit status is that
of `run_with_jars`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from support.servers.processes import wait_until
from support.spark.outside_jars import run_with_jars

CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def main(job: dict[str, Any]) -> int:
    folder = Path(job["folder"])
    commit = folder / "checkpoint" / "commits" / "0"

    def run_twice(spark: SparkSession) -> None:
        run(spark, folder)
        wait_until(f"{commit} is there", commit.exists)
        commit.unlink()
        run(spark, folder)
        wait_until(f"{commit} is there again", commit.exists)

    return run_with_jars(job, CONF, run_twice)


def run(spark: SparkSession, folder: Path) -> None:
    rows = spark.readStream.schema("n bigint").parquet(str(folder / "input"))
    writer = rows.dropDuplicates(["n"]).writeStream.format("delta").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.start(str(folder / "table")).awaitTermination()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
