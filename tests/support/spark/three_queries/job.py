"""The job that tests of the commit kill: three queries whose results become visible in three ways.

`totals` is an aggregate in update mode into the log, `files` windows in append mode into Spark's
file sink, `batches` the same into a function for `foreachBatch`, which writes one folder per batch.

Run as a script with one JSON argument. It writes what it is doing to the `status` file and runs
until it is stopped, until a query fails, or, with `available_now`, until the input is read. With
`plain` it commits as Spark alone does: without Penstock's plug-in, provider and file manager. Then
`totals` goes to a folder too, because the sink into the log is not to be had without them. `files`
reads the log, or a folder of files if one is named.

There may be several of a kind: `totals_a` is a query as `totals` is, with a checkpoint, an output
and settings of its own.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock_lab.experiment.running_query import last_batch
from support.spark.session_settings import session_settings

if TYPE_CHECKING:
    import pandas as pd

NAMES = ("totals", "files", "batches")
READINGS = "n bigint, key bigint, value bigint, at timestamp"
WINDOW_MS = 4_000
DELAY_MS = 1_000

CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
MODE = "spark.penstock.commit.mode"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STOCK = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main(job: dict[str, Any]) -> int:
    spark = plain_session(job) if job.get("plain") else penstock_session(job)
    spark.sparkContext.setLogLevel("WARN")
    queries = [start(spark, name, job) for name in job.get("queries", NAMES)]
    status = Path(job["status"])
    said = introduced(queries)
    while True:
        # Asked first: a query that fails after its exception was asked for must not pass for done.
        is_active = any(q.isActive for q in queries)
        failed = next((q for q in queries if q.exception() is not None), None)
        for query, of_query in zip(queries, said.values(), strict=True):
            of_query["batch"] = last_batch(query)
            if job.get("watched"):
                watch(spark, query, of_query)
        report(status, said, failed)
        if failed is not None:
            return 3
        if not is_active:
            spark.stop()
            return 0
        # Every look asks the JVM some times, which is as busy as it can be.
        time.sleep(0.2)


def penstock_session(job: dict[str, Any]) -> SparkSession:
    import penstock

    return penstock.session(job["master"], url=job["url"], token=job["token"], conf=job["conf"])


def plain_session(job: dict[str, Any]) -> SparkSession:
    builder: SparkSession.Builder = SparkSession.builder.master(job["master"])
    reads_files = set(job.get("queries", NAMES)) <= set(job.get("file_readers", ()))
    source = {} if reads_files else source_only(job)
    for key, value in {**job["conf"], **source, PROVIDER: STOCK}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def source_only(job: dict[str, Any]) -> dict[str, str]:
    """The jar for its source: nothing of it is told to take part in the commit."""
    from penstock.spark.jar import find_jar

    return {
        "spark.jars": str(find_jar().path),
        "spark.penstock.url": job["url"],
        "spark.penstock.token": job["token"],
    }


def kind_of(name: str) -> str:
    """The one of `NAMES` that a query is a copy of."""
    return name.partition("_")[0]


def start(spark: SparkSession, name: str, job: dict[str, Any]) -> StreamingQuery:
    settings = {CHANGELOG: str(name != job.get("snapshots")).lower()}
    if not job.get("plain"):
        settings[MODE] = job.get("modes", {}).get(name, "full")
    # A query takes the settings of the session as they are when it starts.
    with session_settings(spark, {**settings, **job.get("settings", {}).get(name, {})}):
        return started(spark, name, job)


def started(spark: SparkSession, name: str, job: dict[str, Any]) -> StreamingQuery:
    kind, folder = kind_of(name), Path(job["folder"])
    rows = source(spark, name, job)
    of_keys = transformed_totals if name in job.get("transformed", ()) else totals
    frame = of_keys(rows) if kind == "totals" else windows(rows)
    writer = (
        frame.writeStream.queryName(name)
        .outputMode("update" if kind == "totals" else "append")
        .option("checkpointLocation", str(folder / "checkpoints" / name))
    )
    if job.get("available_now"):
        writer = writer.trigger(availableNow=True)
    if kind == "totals" and not job.get("plain"):
        return writer.format("penstock").option("substreams", 2).option("key", "key").start(name)
    if kind == "files":
        return writer.format("parquet").start(str(folder / name))

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(folder / name / f"batch={number}"))

    return writer.foreachBatch(write).start()


def source(spark: SparkSession, name: str, job: dict[str, Any]) -> DataFrame:
    if name in job.get("file_readers", ()):
        reader = spark.readStream.schema(READINGS).format("parquet")
        return reader.option("maxFilesPerTrigger", job["files_per_batch"]).load(job["input_files"])
    reader = spark.readStream.format("penstock")
    return reader.option("maxRowsPerTrigger", job["rows_per_batch"]).load("readings")


def totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(
        f.count("*").alias("rows"), f.sum("value").alias("total"), f.max("n").alias("last_n")
    )


class Totals(StatefulProcessor):
    """The same, kept by hand: for this Spark takes no other provider of state than its own."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._kept = handle.getValueState("kept", "rows bigint, total bigint, last_n bigint")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        # It takes longer to import than Spark to start a query, and one run of many needs it.
        import pandas as pd

        count, total, last_n = self._kept.get() or (0, 0, -1)
        for frame in rows:
            count += len(frame)
            total += int(frame["value"].sum())
            last_n = max(last_n, int(frame["n"].max()))
        self._kept.update((count, total, last_n))
        yield pd.DataFrame({"key": [key[0]], "rows": [count], "total": [total], "last_n": [last_n]})

    def close(self) -> None:
        pass


def transformed_totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").transformWithStateInPandas(
        Totals(), "key bigint, rows bigint, total bigint, last_n bigint", "Update", "None"
    )


def windows(rows: DataFrame, slide_ms: int = WINDOW_MS) -> DataFrame:
    slide = f"{slide_ms} milliseconds"
    return (
        rows.withWatermark("at", f"{DELAY_MS} milliseconds")
        .groupBy(f.window("at", f"{WINDOW_MS} milliseconds", slide), "key")
        .agg(f.count("*").alias("rows"), f.sum("value").alias("total"))
        .select(f.unix_millis("window.end").alias("ends"), "key", "rows", "total")
    )


def introduced(queries: list[StreamingQuery]) -> dict[str, dict[str, Any]]:
    """The queries by name, with what stays the same as long as they run."""
    return {
        str(q.name): {"id": str(q.id), "run": str(q.runId), "batch": -1, "steps": {}}
        for q in queries
    }


def watch(spark: SparkSession, query: StreamingQuery, said: dict[str, Any]) -> None:
    """Add the tasks of a query that run now, and what its commits took so far."""
    import penstock

    said["active_tasks"] = active_tasks(spark, str(query.runId))
    # A query that has stopped has none to tell of any more.
    said["steps"] = penstock.commit_steps(query) or said["steps"]


def report(status: Path, said: dict[str, dict[str, Any]], failed: StreamingQuery | None) -> None:
    error = None if failed is None else str(failed.exception())
    fresh = status.with_suffix(".new")
    fresh.write_text(json.dumps({"queries": said, "error": error}))
    fresh.rename(status)


def active_tasks(spark: SparkSession, run: str) -> int:
    """Tasks of a query that run now. Spark runs the jobs of a query in a group named by its run."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(run)]
    running = [job for job in jobs if job is not None and job.status == "RUNNING"]
    stages = [tracker.getStageInfo(stage) for job in running for stage in job.stageIds]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
