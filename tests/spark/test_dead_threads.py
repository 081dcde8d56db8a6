"""Threads of the driver that end between a step of a commit and the news of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.client import Client
from support.servers.processes import wait_until
from support.spark.failpoints import Points

HELD = 1
BATCHES = 3


def end_thread_in_failpoint(spark: SparkSession, pool: str) -> None:
    """Ends the thread of the pool that stands still at a failpoint."""
    jvm: Any = spark._jvm
    traces = dict(jvm.java.lang.Thread.getAllStackTraces())
    (thread,) = (
        thread
        for thread, calls in traces.items()
        if thread.getName().startswith(f"penstock-{pool}-")
        and any(call.getClassName().startswith("penstock.Failpoint") for call in calls)
    )
    thread.interrupt()
    wait_until(f"{thread.getName()} has ended", lambda: not thread.isAlive())


@pytest.mark.parametrize(
    ("point", "pool"), [("after_marker", "release"), ("after_copy", "follow")], ids=str
)
def test_a_step_whose_thread_ends_before_it_is_told_costs_the_query_nothing(
    spark: SparkSession,
    client: Client,
    points: Points,
    fresh: Callable[[str], str],
    tmp_path: Path,
    point: str,
    pool: str,
) -> None:
    given, made = fresh("given"), fresh("made")
    client.create(given, "n bigint")
    counts = spark.readStream.format("penstock").load(given).groupBy("n").count()
    query = (
        counts.writeStream.format("penstock")
        .outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(made)
    )
    only = f"batch={HELD}"
    points.hold(point, [query.id], only)
    for batch in range(BATCHES):
        client.append(given, pa.table({"n": pa.array([batch], pa.int64())}))
        if batch == HELD:
            wait_until(
                f"batch {HELD} stands at {point}",
                lambda: points.held(point, [query.id], only) != {},
            )
            end_thread_in_failpoint(spark, pool)
            points.let_go(point)
        query.processAllAvailable()
    assert query.exception() is None
    query.stop()
    assert sorted(client.read(made)["n"].to_pylist()) == list(range(BATCHES))
    last = tmp_path / "checkpoint" / "commits" / str(BATCHES - 1)
    wait_until("the location has every batch", last.exists)
