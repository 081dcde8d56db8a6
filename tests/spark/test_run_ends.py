"""What the plug-in has open for a query is closed when the query has ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.client import Client
from penstock.spark import jvm
from support.servers.processes import wait_until

RESOURCES_CLASS = "penstock.commit.jvm.JvmResources"
MODE = "spark.penstock.commit.mode"
RUNS = 4


def holdings() -> dict[str, int]:
    """How much the plug-in has open in this JVM, by kind."""
    counts: dict[str, int] = json.loads(jvm._call_static(RESOURCES_CLASS, "holdingsJson"))
    return counts


@pytest.mark.parametrize("mode", ["full", "sync"])
def test_queries_that_have_ended_leave_nothing_open(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], tmp_path: Path, mode: str
) -> None:
    """Runs that end by themselves and runs that are stopped, of one query and of several."""
    before = holdings()
    own = spark.newSession()
    own.conf.set(MODE, mode)
    given, made = fresh("given"), fresh("made")
    client.create(given, "n bigint")
    counts = own.readStream.format("penstock").load(given).groupBy("n").count()
    for run in range(RUNS):
        client.append(given, pa.table({"n": pa.array([run], pa.int64())}))
        is_ending = run % 2 == 0
        writer = (
            counts.writeStream.format("penstock")
            .outputMode("update")
            .option("checkpointLocation", str(tmp_path / f"checkpoint{run // 2}"))
        )
        query = (writer.trigger(availableNow=True) if is_ending else writer).start(
            f"{made}_{run // 2}"
        )
        if is_ending:
            query.awaitTermination(300)
        else:
            query.processAllAvailable()
            assert holdings()["runs of queries"] > before["runs of queries"]
            query.stop()
    wait_until(
        "nothing more is open",
        lambda: all(left <= before[kind] for kind, left in holdings().items()),
    )
    rows = [row["n"] for number in (0, 1) for row in client.read(f"{made}_{number}").to_pylist()]
    assert sorted(rows) == [0, 0, 1, 1, 2, 3]
