"""The job that fault tests kill: a stateful query and one whose output is never twice the same.

Others are there to be asked for by name: `twins` writes every event to two streams. There may be
several of a kind: `totals_a` is a query as `totals` is, with an output and settings of its own.

Run as a script with one JSON argument. It writes what it is doing to the `status` file and runs
until it is stopped, until a query fails, or, with `available_now`, until the input is read.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import penstock
from penstock_lab.experiment.running_query import last_batch
from support.spark.exactly_once import PAIRED, SLIDE_MS, START_MS, STEP_MS
from support.spark.session_settings import session_settings
from support.spark.three_queries.job import windows


def main(job: dict[str, Any]) -> int:
    spark = penstock.session(
        job["master"],
        url=job["url"],
        token=job["token"],
        conf=job["conf"],
    )
    spark.sparkContext.setLogLevel("WARN")
    names = job.get("queries", ["totals", "copies"])
    queries = [start(spark, name, job) for name in names]
    status = Path(job["status"])
    configuration: dict[str, float] = {}
    while True:
        # Asked first: a query that ends in between is then looked at once more.
        is_active = any(q.isActive for q in queries)
        failed = next((q for q in queries if q.exception() is not None), None)
        if job.get("reports_configuration"):
            configuration = configuration_of(spark, queries, configuration.get("broadcast_max", 0))
        report(status, queries, failed, hints_of(spark, queries), configuration)
        if failed is not None:
            return 3
        if not is_active:
            spark.stop()
            return 0
        # Every look asks the JVM several times, which is as busy as it can be.
        time.sleep(0.2)


def start(spark: SparkSession, name: str, job: dict[str, Any]) -> StreamingQuery:
    events = (
        spark.readStream.format("penstock")
        .option("maxRowsPerTrigger", job.get("rows_per_batch", 2000))
        .load("events")
    )
    writer = (
        writer_of(name, events)
        .queryName(name)
        .option("checkpointLocation", str(Path(job["folder"]) / "checkpoints" / name))
    )
    if job.get("available_now"):
        writer = writer.trigger(availableNow=True)
    # A query takes the settings of the session as they are when it starts.
    with session_settings(spark, job.get("settings", {}).get(name, {})):
        return writer.start() if name == "twins" else writer.start(name)


def writer_of(name: str, events: DataFrame) -> DataStreamWriter:
    if name == "twins":
        outputs = penstock.Outputs(lefts=copies(events), rights=events.select("n", "value"))
        return outputs.writeStream.option("lefts.substreams", 2).option("lefts.key", "n")
    made: dict[str, tuple[DataFrame, str, str]] = {
        "totals": (totals(events), "update", "key"),
        "copies": (copies(events), "append", "n"),
        "slow": (slow(events), "append", "n"),
        "pairs": (pairs(events), "append", "n"),
        "windows": (windows(timed(events), SLIDE_MS), "append", "key"),
    }
    frame, mode, key = made[name.partition("_")[0]]
    writer = frame.writeStream.format("penstock").outputMode(mode)
    return writer.option("substreams", 2).option("key", key)


def totals(events: DataFrame) -> DataFrame:
    return events.groupBy("key").agg(
        f.count("*").alias("rows"), f.sum("value").alias("total"), f.max("n").alias("last_n")
    )


def timed(events: DataFrame) -> DataFrame:
    return events.withColumn("at", f.timestamp_millis(f.col("n") * STEP_MS + START_MS))


def copies(events: DataFrame) -> DataFrame:
    return events.select("n", "key", f.expr("uuid()").alias("id"), f.rand().alias("chance"))


def pairs(events: DataFrame) -> DataFrame:
    """Every event with the one `PAIRED` numbers before it, joined in either order of arrival."""
    before = events.select(f.col("n").alias("m"), f.col("value").alias("before"))
    return events.select("n", "value").join(before, f.col("n") == f.col("m") + PAIRED)


def slow(events: DataFrame) -> DataFrame:
    """Partition 0 hangs in its first attempt, after it has sent more than one request's rows."""

    def hang(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        attempt = task.attemptNumber()
        for batch in batches:
            for row in batch["n"].to_pylist():
                columns = {"n": [row], "attempt": [attempt], "text": ["x" * 10_000]}
                yield pa.record_batch(columns)
        if task.partitionId() == 0 and attempt == 0:
            time.sleep(120)

    return events.select("n").mapInArrow(hang, "n bigint, attempt bigint, text string")


def hints_of(spark: SparkSession, queries: list[StreamingQuery]) -> dict[str, int]:
    """Blocks of hints between executors, and what became of the keys of all hints."""
    if "spark.penstock.prefetch" not in dict(spark.sparkContext.getConf().getAll()):
        return {}
    counts = [penstock.prefetch_counts(q) for q in queries]
    operators = [each for count in counts for each in count.operators]
    return {
        "passed_on": max((count.relayed.passed_on for count in counts), default=0),
        "arrived": max((count.relayed.arrived for count in counts), default=0),
        "dropped": max((count.relayed.dropped for count in counts), default=0),
        "used": sum(sum(each.used.values()) for each in operators),
    }


def configuration_of(
    spark: SparkSession, queries: list[StreamingQuery], broadcast_max: float
) -> dict[str, float]:
    """Properties of the Hadoop configuration with a note of the file that they came from; the size
    of one with all notes; and the most bytes that a batch broadcasts beside its tasks, which are
    those of configurations."""
    jvm: Any = spark._jvm
    sources = jvm.org.apache.spark.sql.penstock.SparkMembers.ConfigurationSources()
    noted = jvm.org.apache.hadoop.conf.Configuration()
    noted.size()
    buffer = jvm.java.io.ByteArrayOutputStream()
    noted.write(jvm.java.io.DataOutputStream(buffer))
    counted = [ledger.counters for query in queries for ledger in penstock.batch_steps(query)]
    beside_tasks = [each["broadcast bytes"] - each["task bytes"] for each in counted]
    return {
        "noted_sources": sources.of(spark._jsc.hadoopConfiguration()).size(),
        "bytes_with_notes": buffer.size(),
        "broadcast_max": max([broadcast_max, *beside_tasks]),
    }


def report(
    status: Path,
    queries: list[StreamingQuery],
    failed: StreamingQuery | None,
    hints: dict[str, int],
    configuration: dict[str, float],
) -> None:
    said = {
        "pid": os.getpid(),
        "queries": {str(q.name): {"id": str(q.id), "batch": last_batch(q)} for q in queries},
        "error": None if failed is None else str(failed.exception()),
        "hints": hints,
        "configuration": configuration,
    }
    fresh = status.with_suffix(".new")
    fresh.write_text(json.dumps(said))
    fresh.rename(status)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
