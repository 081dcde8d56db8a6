"""The ledger of real batches: it adds up, names what the plug-in does, and ends with the query."""

from __future__ import annotations

import os
from collections.abc import Callable
from statistics import median

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.client import Client
from support.servers.processes import wait_until

BATCHES = 12
BROADCAST_BYTES = 1_000_000


def test_the_steps_of_a_stateful_query_add_up_batch_by_batch(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], checkpoint: str
) -> None:
    numbers, counts = fresh("numbers"), fresh("counts")
    client.create(numbers, "n bigint", substreams=2)
    client.create(counts, "k bigint, count bigint", substreams=2)
    rows = spark.readStream.format("penstock").load(numbers)
    query = (
        rows.groupBy((rows.n % 10).alias("k"))
        .count()
        .writeStream.format("penstock")
        .outputMode("update")
        .option("checkpointLocation", checkpoint)
        .start(counts)
    )
    try:
        for batch in range(3):
            client.append(numbers, [{"n": 100 * batch + n} for n in range(100)])
            query.processAllAvailable()
        # Spark tells its listeners on a thread of their own.
        wait_until("three ledgers", lambda: len(penstock.batch_steps(query)) >= 3)
        ledgers = penstock.batch_steps(query)
    finally:
        query.stop()
    assert [ledger.batch for ledger in ledgers] == list(range(len(ledgers)))
    assert sum(ledger.rows for ledger in ledgers) == 300
    progress = {p["batchId"]: p["durationMs"]["triggerExecution"] for p in query.recentProgress}
    for ledger in ledgers:
        assert ledger.trigger_ms == progress[ledger.batch]
        # Spark rounds each of its phases to a millisecond.
        assert sum(ledger.wall_ms.values()) == pytest.approx(ledger.trigger_ms, abs=8)
        assert ledger.explained > 0.85
        assert ledger.counters["tasks"] == 4
        assert ledger.wall_ms["tasks"] > 0
        # The tasks of two stages, and Hadoop's configuration for their stores.
        assert 2_000 < ledger.counters["task bytes"] < ledger.counters["broadcast bytes"] - 1_000
    # Some take less than a millisecond, in which Spark stamps them.
    for step in ("hand over", "report"):
        assert sum(ledger.task_ms[step] for ledger in ledgers) > 0
    last = ledgers[-1]
    assert last.task_ms["sink"] > 0
    assert last.task_ms["fetch"] == 0, "rows of a small batch come with the answer"
    assert last.counters["requests"] >= 4
    assert last.counters["request ms"] > 0
    wait_until("the end of the query", lambda: penstock.batch_steps(query) == [])


def test_what_is_broadcast_counts_when_it_is_put_and_not_when_it_goes(
    spark: SparkSession, fresh: Callable[[str], str], client: Client, checkpoint: str
) -> None:
    numbers, copies = fresh("numbers"), fresh("copies")
    client.create(numbers, "n bigint")
    rows = spark.readStream.format("penstock").load(numbers)
    writer = rows.writeStream.format("penstock").option("checkpointLocation", checkpoint)
    query = writer.start(copies)
    try:
        query.processAllAvailable()
        put = spark.sparkContext.broadcast(os.urandom(BROADCAST_BYTES))
        client.append(numbers, [{"n": 1}])
        query.processAllAvailable()
        put.destroy(blocking=True)
        client.append(numbers, [{"n": 2}])
        query.processAllAvailable()
        wait_until("three ledgers", lambda: len(penstock.batch_steps(query)) >= 3)
        ledgers = [ledger for ledger in penstock.batch_steps(query) if ledger.rows]
    finally:
        query.stop()
    before, after = (ledger.counters["broadcast bytes"] for ledger in ledgers)
    assert before > BROADCAST_BYTES > after > 0


def requests_per_batch(
    spark: SparkSession, client: Client, numbers: str, counts: str, checkpoint: str
) -> tuple[float, float]:
    """Batches of a stateful query one right after the other: requests, and ms of fetching."""
    client.create(numbers, "n bigint", substreams=2, key="n")
    client.create(counts, "k bigint, count bigint", substreams=2)
    for batch in range(BATCHES):
        client.append(numbers, [{"n": 100 * batch + n} for n in range(100)])
    rows = spark.readStream.format("penstock").option("maxRowsPerTrigger", 100).load(numbers)
    query = (
        rows.groupBy((rows.n % 10).alias("k"))
        .count()
        .writeStream.format("penstock")
        .outputMode("update")
        .option("checkpointLocation", checkpoint)
        .start(counts)
    )
    try:
        query.processAllAvailable()
        wait_until("the ledgers", lambda: len(penstock.batch_steps(query)) >= BATCHES)
        ledgers = penstock.batch_steps(query)[1:BATCHES]
    finally:
        query.stop()
    totals = {row["k"]: row["count"] for row in client.read(counts).to_pylist()}
    assert totals == dict.fromkeys(range(10), 10 * BATCHES)
    return (
        median(ledger.counters["requests"] for ledger in ledgers),
        median(ledger.task_ms["fetch"] for ledger in ledgers),
    )


def test_a_small_batch_takes_four_requests(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], checkpoint: str
) -> None:
    # Admission with the rows, for each of two tasks its output and state, the marker with offsets.
    requests, fetch_ms = requests_per_batch(
        spark, client, fresh("numbers"), fresh("counts"), checkpoint
    )
    assert (requests, fetch_ms) == (4, 0)


def test_tasks_fetch_their_rows_where_none_are_to_come_with_the_answer(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], checkpoint: str
) -> None:
    spark.conf.set("spark.penstock.inline.bytes", "0")
    try:
        requests, fetch_ms = requests_per_batch(
            spark, client, fresh("numbers"), fresh("counts"), checkpoint
        )
    finally:
        spark.conf.unset("spark.penstock.inline.bytes")
    assert requests == 6
    assert fetch_ms > 0


def test_a_query_without_the_log_has_a_ledger_too(
    spark: SparkSession, fresh: Callable[[str], str], checkpoint: str
) -> None:
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = rate.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        wait_until("a ledger", lambda: penstock.batch_steps(query) != [])
        first = penstock.batch_steps(query)[0]
    finally:
        query.stop()
    assert (first.batch, first.rows) == (0, 10)
    assert first.wall_ms["planning"] > 0
    assert first.task_ms["sink"] == 0
