"""The job whose checkpoint is in S3, behind the file manager that Spark has for it.

Run as a script with one JSON argument: `jars` of Hadoop's client and of Spark's file manager, the
`endpoint` of the server and the `folder` of the input. Runs the query twice, with another file of
input for the second time, and writes what its output has to `shown.json`. The exit status is that
of `run_with_jars`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from support.spark.outside_jars import run_with_jars

BUCKET = "checkpoints"
# The log of a file sink is written by the same file manager, which takes no local folder.
OUTPUT = f"s3a://{BUCKET}/output"
CONF = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.access.key": "test",
    "spark.hadoop.fs.s3a.secret.key": "test",
    "spark.hadoop.fs.s3a.aws.credentials.provider": (
        "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
    ),
    "spark.hadoop.fs.AbstractFileSystem.s3a.impl": "org.apache.hadoop.fs.s3a.S3A",
}


def main(job: dict[str, Any]) -> int:
    folder = Path(job["folder"])

    def run_twice(spark: SparkSession) -> None:
        run(spark, folder)
        (folder / "later.parquet").rename(folder / "input" / "later.parquet")
        run(spark, folder)
        shown = [row.n for row in spark.read.parquet(OUTPUT).collect()]
        (folder / "shown.json").write_text(json.dumps(shown))

    return run_with_jars(job, {**CONF, "spark.hadoop.fs.s3a.endpoint": job["endpoint"]}, run_twice)


def run(spark: SparkSession, folder: Path) -> None:
    reader = spark.readStream.schema("n bigint").option("maxFilesPerTrigger", 1)
    rows = reader.parquet(str(folder / "input")).dropDuplicates(["n"])
    writer = rows.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", f"s3a://{BUCKET}/checkpoint")
    writer.start(OUTPUT).awaitTermination()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
