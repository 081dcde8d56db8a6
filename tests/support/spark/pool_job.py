"""The job of the pool's cluster test: sleeping jobs in pools of each order, on all cores at once, a
query with a deadline, and two whose batches are planned.

Run as a script with one JSON argument. It writes the starts of every job's tasks and what became of
the queries to the `status` file and ends.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import penstock
from penstock.client import Client
from penstock.model.device_plans import ExplainedPlan
from support.spark.admitted_queries import numbers
from support.spark.sleeping_jobs import SleepingJob, wait_until

PLANNED_BATCHES = 4
DEVICES = "spark.penstock.devices"
POLICY = f"{DEVICES}.policy"


def main(job: dict[str, Any]) -> None:
    spark = penstock.session(
        job["master"], url=job["url"], token=job["token"], conf=job["conf"], app_name="pools"
    )
    cores: int = job["cores"]
    # Before all executors are there, the first jobs would have fewer cores than the last.
    wait_until(lambda: executors(spark) == job["executors"])
    jvm: Any = spark._jvm
    jvm.penstock.testing.SchedulePlay.addPool(spark.sparkContext._jsc.sc(), "rdas", "shares")
    starts = {
        "overtaking": overtaking(spark, cores),
        "sharing": sharing(spark, cores),
        "outside": outside(spark, cores),
    }
    client, folder = Client(job["url"], job["token"]), Path(job["folder"])
    admitted = deadline_query(spark, client, folder)
    # By the second one it is known of the driver and both executors what their workers can.
    settings = {"asked": {DEVICES: "cpu"}, "planned": {DEVICES: "auto", POLICY: "all-cpu"}}
    planned = {
        name: planned_query(spark, client, folder / name, name, chosen)
        for name, chosen in settings.items()
    }
    outcome = {**starts, "admitted": admitted, "planned": planned}
    Path(job["status"]).write_text(json.dumps(outcome))
    spark.stop()


def executors(spark: SparkSession) -> int:
    jvm: Any = spark.sparkContext._jsc.sc()
    return int(jvm.getExecutorMemoryStatus().size()) - 1


def overtaking(spark: SparkSession, cores: int) -> dict[str, list[int]]:
    """Starts of a job, and of one that comes later with an earlier deadline."""
    early = SleepingJob(spark, "early", 15 * cores, ms=100, pool="penstock", due_s=60)
    urgent = SleepingJob(spark, "urgent", 8 * cores, ms=100, pool="penstock", due_s=2)
    early.start()
    early.wait_for(cores)
    urgent.start()
    return {each.name: each.started() for each in (early, urgent)}


def sharing(spark: SparkSession, cores: int) -> dict[str, list[int]]:
    """Starts of three jobs with evenly spaced deadlines, in a pool that shares."""
    jobs = [
        SleepingJob(spark, name, 20 * cores, ms=100, pool="shares", due_s=due_s)
        for name, due_s in (("a", 30.0), ("b", 20.0), ("c", 10.0))
    ]
    for each in jobs:
        each.start()
    return {each.name: each.started() for each in jobs}


def outside(spark: SparkSession, cores: int) -> dict[str, list[int]]:
    """Starts of a job in the pool, and of one that names none and comes later."""
    managed = SleepingJob(spark, "managed", 20 * cores, ms=100, pool="penstock", due_s=60)
    unmanaged = SleepingJob(spark, "unmanaged", 10, ms=100)
    managed.start()
    managed.wait_for(cores)
    unmanaged.start()
    return {each.name: each.started() for each in (managed, unmanaged)}


def deadline_query(spark: SparkSession, client: Client, folder: Path) -> dict[str, Any]:
    """A query with a deadline: the rows it has read, its pool, and how it kept its terms."""
    client.create("given", "n bigint", substreams=2)
    rows: list[int] = []
    pools: list[str | None] = []

    def remember(frame: DataFrame, _: int) -> None:
        rows.extend(row["n"] for row in frame.collect())
        pools.append(frame.sparkSession.sparkContext.getLocalProperty("spark.scheduler.pool"))

    reader = spark.readStream.format("penstock").option("deadline", "5s")
    writer = reader.load("given").writeStream.foreachBatch(remember)
    query = writer.option("checkpointLocation", str(folder / "admitted")).start()
    # One row after the other; nobody waits for all of them, so that admission says when.
    client.append("given", numbers(0))
    wait_until(lambda: rows == [0])
    client.append("given", numbers(1))
    wait_until(lambda: rows == [0, 1])
    wait_until(lambda: client.explain(query.id).batches == 2)
    explained = client.explain(query.id)
    query.stop()
    return {
        "rows": rows,
        "pools": pools,
        "policy": explained.policy,
        "deadline_ms": explained.deadline_ms,
        "slack_ms": explained.slack_ms_p50,
    }


def planned_query(
    spark: SparkSession, client: Client, checkpoint: Path, stream: str, settings: dict[str, str]
) -> dict[str, Any]:
    """A query over sliding windows in Python workers: its machines, and how its batches ran."""
    client.create(stream, "at timestamp, n bigint", substreams=2, key="n")
    for key, value in settings.items():
        spark.conf.set(key, value)
    batches: list[int] = []

    def has_made(count: int) -> bool:
        return len(batches) == count

    reader = spark.readStream.format("penstock").option("policy", "asap")
    windows = reader.load(stream).groupBy(f.window("at", "10 seconds", "5 seconds"))
    writer = windows.agg(f.sum("n")).writeStream.outputMode("update")
    query = (
        writer.foreachBatch(lambda frame, _: batches.append(len(frame.collect())))
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    for number in range(PLANNED_BATCHES):
        at = pa.array([number * 1_000_000] * 20).cast(pa.timestamp("us", "UTC"))
        client.append(stream, pa.table({"at": at, "n": list(range(20))}))
        wait_until(partial(has_made, number + 1))

    def plans() -> list[ExplainedPlan]:
        devices = client.explain(query.id).devices
        return [] if devices is None else list(devices.plans)

    # The first batch is not planned: nobody knows yet what can be.
    wait_until(lambda: sum(plan.measured_ms is not None for plan in plans()) == PLANNED_BATCHES - 1)
    devices = client.explain(query.id).devices
    query.stop()
    return {
        "rows": batches,
        "machines": [] if devices is None else list(devices.machines),
        "paths": [plan.ran_path for plan in plans()],
        "devices": [each.device for plan in plans() for each in plan.operations],
        "reasons": [each.reason for plan in plans() for each in plan.operations],
        "operations_ms": [[each.measured_ms for each in plan.operations] for plan in plans()],
    }


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
