"""The job of the pool's cluster test: sleeping jobs in pools of each order, on all cores at once.

Run as a script with one JSON argument. It writes the starts of every job's tasks to the `status`
file and ends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import penstock
from support.spark.sleeping_jobs import SleepingJob, wait_until


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
    Path(job["status"]).write_text(json.dumps(starts))
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


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
