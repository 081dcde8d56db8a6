"""A driver that runs queries of `penstock.queries`, all at once.

Run as a script with one JSON argument, by DriverProcess. It writes what it is doing to the `status`
file and runs until it is killed, until a query fails, or, with `available_now`, until the input is
read: a stage then starts when the one before it has ended.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock import queries

STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main(job: dict[str, Any]) -> int:
    # Found once the folder of tests is on the path, which a script has to see to itself.
    from support import wrong_queries

    spark = penstock.session(
        job["master"],
        url=job["url"],
        token=job["token"],
        conf={
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            # Runs of a minute spend more on compiling well than it saves them.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.sql.streaming.stateStore.providerClass": STATE,
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
            **job.get("conf", {}),
        },
    )
    spark.sparkContext.setLogLevel("WARN")
    factories = {**queries.ALL, **wrong_queries.ALL}
    waiting = [
        (list(factories[name](**told.get("parameters", {})).stages), told.get("streams", {}))
        for name, told in job["queries"].items()
    ]
    running: dict[str, StreamingQuery] = {}
    while True:
        for stages, streams in waiting:
            start_next(spark, stages, streams, running, job)
        failed = next((q for q in running.values() if q.exception() is not None), None)
        report(Path(job["status"]), running, failed)
        if failed is not None:
            return 3
        if not any(q.isActive for q in running.values()):
            spark.stop()
            return 0
        time.sleep(0.05)


def start_next(
    spark: SparkSession,
    stages: list[queries.Stage],
    streams: dict[str, str],
    running: dict[str, StreamingQuery],
    job: dict[str, Any],
) -> None:
    while stages:
        before = [running[name] for name in stages[0].reads if name in running]
        if job.get("available_now") and any(query.isActive for query in before):
            return
        stage = stages.pop(0)
        running[stage.name] = queries.start_stage(
            spark,
            stage,
            Path(job["folder"]) / "checkpoints",
            streams=streams,
            # A batch takes one commit of each input at least, so this makes it exactly one.
            rows_max=1,
            available_now=bool(job.get("available_now")),
        )


def report(status: Path, running: dict[str, StreamingQuery], failed: StreamingQuery | None) -> None:
    said = {
        "pid": os.getpid(),
        "queries": {name: {"id": str(query.id)} for name, query in running.items()},
        "error": None if failed is None else str(failed.exception()),
    }
    fresh = status.with_suffix(".new")
    fresh.write_text(json.dumps(said))
    fresh.rename(status)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    sys.exit(main(json.loads(sys.argv[1])))
