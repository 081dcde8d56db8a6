"""The job that puts rows of files into a Delta table, killed between Delta's commit and Spark's.

Run as a script with one JSON argument: `jars` of Delta, the `folder` of input, checkpoint and
table. The kill is made by deleting `commits/0`: the rest is what it leaves. The exit status is
DOES_NOT_RUN, and the last line says why, if Delta's classes do not fit Spark's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import penstock
from support.servers.processes import wait_until

DOES_NOT_RUN = 4
MISFITS = ("NoSuchMethodError", "NoClassDefFoundError", "NoSuchFieldError", "AbstractMethodError")


def main(job: dict[str, Any]) -> int:
    folder = Path(job["folder"])
    spark = session(job)
    commit = folder / "checkpoint" / "commits" / "0"
    try:
        run(spark, folder)
        wait_until(f"{commit} is there", commit.exists)
        commit.unlink()
        run(spark, folder)
        wait_until(f"{commit} is there again", commit.exists)
    except Exception as error:
        if any(misfit in str(error) for misfit in MISFITS):
            print(next(line for line in str(error).splitlines() if "STREAM_FAILED" in line))
            return DOES_NOT_RUN
        raise
    spark.stop()
    return 0


def session(job: dict[str, Any]) -> SparkSession:
    builder: SparkSession.Builder = SparkSession.builder.master("local[2]")
    for key, value in {
        **job["conf"],
        # The name of an error is nowhere but in its trace.
        "spark.sql.pyspark.jvmStacktrace.enabled": "true",
        "spark.jars": ",".join(job["jars"]),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }.items():
        builder = builder.config(key, value)
    return penstock.attach(builder).getOrCreate()


def run(spark: SparkSession, folder: Path) -> None:
    rows = spark.readStream.schema("n bigint").parquet(str(folder / "input"))
    writer = rows.dropDuplicates(["n"]).writeStream.format("delta").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.start(str(folder / "table")).awaitTermination()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
