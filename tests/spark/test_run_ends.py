"""What the plug-in has open for a query is closed when the query has ended."""

from __future__ import annotations

import contextlib
import gc
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from support.servers.processes import wait_until
from support.spark.holdings import holdings

MODE = "spark.penstock.commit.mode"
PARTITIONS = "spark.sql.shuffle.partitions"
STRINGS = "[Ljava.lang.String;"
RUNS = 4
QUERIES = 50
AT_ONCE = 10
GROWTH_MAX = 25
"""Objects of a class that may be more than before, where queries leave one each, or more."""


def alive(spark: SparkSession) -> Counter[str]:
    """How many objects of each class of the plug-in are alive, after a collection."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    java = gateway.jvm.java.lang

    def array(kind: Any, *values: Any) -> Any:
        made = gateway.new_array(kind, len(values))
        for place, value in enumerate(values):
            made[place] = value
        return made

    named = ("javax.management.ObjectName", "java.lang.String")
    kinds = [java.Class.forName(name) for name in (*named, "[Ljava.lang.Object;", STRINGS)]
    commands = gateway.jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    asked = array(java.Object, array(java.String))
    values = (commands, "gcClassHistogram", asked, array(java.String, STRINGS))
    # The server's own class is not public: its method is reached through the interface.
    invoke = java.Class.forName("javax.management.MBeanServer").getMethod(
        "invoke", array(java.Class, *kinds)
    )
    server = java.management.ManagementFactory.getPlatformMBeanServer()
    histogram = invoke.invoke(server, array(java.Object, *values))
    lines = re.findall(r"^\s*\d+:\s+(\d+)\s+\d+\s+(penstock\.\S+)", histogram, re.MULTILINE)
    return Counter({name: int(count) for count, name in lines})


def test_fifty_queries_that_were_stopped_leave_no_object_behind(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    """Stopped at rest, or in the middle of a batch; some end with an error of their own."""
    own = spark.newSession()
    own.conf.set(PARTITIONS, "1")
    given = fresh("given")
    client.create(given, "n bigint")
    client.append(given, pa.table({"n": pa.array(range(10), pa.int64())}))
    rows = own.readStream.format("penstock").load(given)

    def start(number: int) -> StreamingQuery:
        n = F.when(F.lit(number % 5 == 4), F.raise_error(F.lit("as told"))).otherwise(F.col("n"))
        counts = rows.groupBy(n.cast("bigint").alias("n")).count()
        writer = counts.writeStream.outputMode("update" if number % 2 else "complete")
        location = str(tmp_path / f"checkpoint{number}")
        return writer.format("penstock").option("checkpointLocation", location).start(fresh("made"))

    def run(numbers: range) -> None:
        queries = [start(number) for number in numbers]
        for number, query in zip(numbers, queries, strict=True):
            if number % 5 == 4:
                with pytest.raises(StreamingQueryException, match="as told"):
                    query.processAllAvailable()
            elif number % 3:
                query.processAllAvailable()
            query.stop()

    def unload() -> None:
        # Spark itself keeps the stores of queries that have ended, for up to a minute.
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        stores = gateway.jvm.org.apache.spark.sql.execution.streaming.state
        getattr(getattr(stores, "StateStore$"), "MODULE$").stop()

    before = holdings()
    run(range(AT_ONCE))
    unload()
    gc.collect()
    first = alive(spark)
    for begin in range(0, QUERIES, AT_ONCE):
        run(range(begin + AT_ONCE, begin + 2 * AT_ONCE))
    wait_until(
        "nothing more is open",
        lambda: all(left <= before[kind] for kind, left in holdings().items()),
    )
    unload()

    def grown() -> dict[str, int]:
        gc.collect()  # what Python has of a query keeps it alive in the JVM
        return {name: n for name, n in (alive(spark) - first).items() if n > GROWTH_MAX}

    with contextlib.suppress(AssertionError):
        wait_until("they are gone", lambda: not grown(), 30)
    assert grown() == {}


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
