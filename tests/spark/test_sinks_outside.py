"""Sinks outside the log that are of Spark's newer interface, as Kafka's is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.client import Client

MODE = "spark.penstock.commit.mode"
ROWS = 10


def test_the_gate_adds_no_job_to_a_write_of_sparks_and_hides_no_count_of_rows(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    given = fresh("given")
    client.create(given, "n bigint")
    client.append(given, pa.table({"n": pa.array(range(ROWS), pa.int64())}))
    jobs = {}
    for mode in ("sync", "asyncckpt", "full"):
        own = spark.newSession()
        own.conf.set(MODE, mode)
        counts = own.readStream.format("penstock").load(given).groupBy("n").count()
        query = (
            counts.writeStream.format("noop")
            .outputMode("update")
            .option("checkpointLocation", str(tmp_path / mode))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)
        assert query.lastProgress is not None
        assert query.lastProgress["sink"]["numOutputRows"] == ROWS, mode
        jobs[mode] = len(spark.sparkContext.statusTracker().getJobIdsForGroup(str(query.runId)))
    assert jobs["sync"] > 0
    assert set(jobs.values()) == {jobs["sync"]}, jobs
