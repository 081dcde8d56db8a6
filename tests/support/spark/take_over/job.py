"""The job that goes from Spark alone to Penstock and back: windows from files into files.

One query for each of VARIANTS, with folders of its own for everything. Run as a script
with one JSON argument: `plain` is Spark alone, without the jar; `modes` says how Penstock commits
each query, `settings` what else a query is set to. Before and after the queries Spark alone reads,
as a user would, what it is asked for: `read` names the file for the state in the checkpoints at the
start and the outputs at the end.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from penstock_lab.experiment.running_query import last_batch
from support.servers.processes import wait_until
from support.spark.three_queries.job import (
    CHANGELOG,
    PROVIDER,
    READINGS,
    STOCK,
    introduced,
    report,
    windows,
)

FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
MODE = "spark.penstock.commit.mode"
NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"

# Half a window, so that each row is in two of them, which panes are for.
SLIDE_MS = 2_000

VARIANTS = {
    "v1": {FORMAT: "1", CHANGELOG: "true"},
    "v1-snapshots": {FORMAT: "1", CHANGELOG: "false"},
    "v1-third": {FORMAT: "1", CHANGELOG: "false"},
    "v2-cleaned": {FORMAT: "2", CHANGELOG: "true"},
    "v2-snapshots": {FORMAT: "2", CHANGELOG: "false"},
    "v2-third": {FORMAT: "2", CHANGELOG: "true"},
}

# A session keeps what was set for the query before.
SWITCHES_ON = {
    "spark.penstock.eviction": "skip",
    "spark.penstock.batch.watermark": "reference",
    "spark.penstock.windows": "panes",
    "spark.penstock.checkpoint.localFiles": "direct",
}

# Their sinks skip a batch that is run again, as Spark's do.
SKIPPING = frozenset(name for name, settings in VARIANTS.items() if settings[FORMAT] == "1")

# Its source deletes what it has read.
CLEANED = "v2-cleaned"


def main(job: dict[str, Any]) -> int:
    spark = session(job)
    spark.sparkContext.setLogLevel("WARN")
    folder = Path(job["folder"])
    answers: dict[str, Any] = {}
    if "read" in job:
        answers["state"] = {name: state(spark, name, folder) for name in VARIANTS}
        answers["about"] = {name: about_state(spark, folder / name) for name in VARIANTS}
    queries = [start(spark, name, folder, job) for name in job.get("queries", VARIANTS)]
    said = introduced(queries)
    is_active = True
    while is_active:
        # Asked first: one that fails after its exception was asked for must not pass for done.
        is_active = any(q.isActive for q in queries)
        failed = next((q for q in queries if q.exception() is not None), None)
        for query, of_query in zip(queries, said.values(), strict=True):
            of_query["batch"] = last_batch(query)
        report(Path(job["status"]), said, failed)
        if failed is not None:
            return 3
        time.sleep(0.2)
    for query in queries:
        query.awaitTermination()
        # It follows behind, and Spark's end gives it no more than a moment.
        last = folder / query.name / "checkpoint" / "commits" / str(job["last"])
        wait_until(f"{last} is there", last.exists)
    if "read" in job:
        answers["output"] = {
            name: rows_of(spark.read.parquet(str(folder / name / "output"))) for name in VARIANTS
        }
        Path(job["read"]).write_text(json.dumps(answers))
    spark.stop()
    return 0


def session(job: dict[str, Any]) -> SparkSession:
    builder: SparkSession.Builder = SparkSession.builder.master(job["master"])
    for key, value in {**job["conf"], PROVIDER: STOCK}.items():
        builder = builder.config(key, value)
    if job.get("plain"):
        return builder.getOrCreate()
    import penstock

    spark = penstock.attach(builder).getOrCreate()
    penstock.verify(spark)
    return spark


def start(spark: SparkSession, name: str, folder: Path, job: dict[str, Any]) -> StreamingQuery:
    # A query takes the settings of the session as they are when it starts.
    set_all(spark, VARIANTS[name])
    if not job.get("plain"):
        from penstock.spark.spark_conf import PROVIDER as OURS

        spark.conf.set(MODE, job["modes"][name])
        spark.conf.set(PROVIDER, OURS)
        set_all(spark, {**SWITCHES_ON, **job.get("settings", {}).get(name, {})})
    reader = spark.readStream.schema(READINGS).option("maxFilesPerTrigger", 1)
    if name == CLEANED and not job.get("plain"):
        reader = reader.option("cleanSource", "delete")
    writer = (
        windows(reader.parquet(str(folder / name / "input")), SLIDE_MS)
        .writeStream.queryName(name)
        .option("checkpointLocation", str(folder / name / "checkpoint"))
    )
    if job.get("available_now"):
        writer = writer.trigger(availableNow=True)
    return writer.format("parquet").start(str(folder / name / "output"))


def set_all(spark: SparkSession, settings: dict[str, str]) -> None:
    for key, value in settings.items():
        spark.conf.set(key, value)


def state(spark: SparkSession, name: str, folder: Path) -> list[list[int]]:
    """End, key, count and sum of the windows that are open, by Spark's own reader of state.

    It takes the format of a checkpoint from the session, whatever the checkpoint says.
    """
    set_all(spark, VARIANTS[name])
    stored = spark.read.format("statestore").load(str(folder / name / "checkpoint"))
    return rows_of(
        stored.select(f.unix_millis("key.window.end"), "key.key", "value.count", "value.sum")
    )


def about_state(spark: SparkSession, folder: Path) -> list[list[Any]]:
    stored = spark.read.format("state-metadata").load(str(folder / "checkpoint"))
    return rows_of(stored.select("operatorName", "numPartitions", "maxBatchId"))


def rows_of(frame: DataFrame) -> list[list[Any]]:
    return sorted(list(row) for row in frame.collect())


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
