"""Queries with a deadline or a policy over the log, files and a rate source, kept by the server.

fixed, 1 s    rows  · · · · · · · · · · · ·      batches no closer than a second
                        └─ cut ──┴─ cut ──┘
deadline 3 s  row   ·─── withheld ──┬ cut ─ visible ┤ 3 s
"""

from __future__ import annotations

import datetime as dt
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from penstock.model.admission_answers import AdmissionDecision
from support.servers.processes import ServerProcess, wait_until
from support.spark.admitted_queries import batches, numbers, put_file, rows_in, started

Fresh = Callable[[str], str]
FIXED = {"policy": "fixed", "interval": "1s"}
CLOSEST_S = 0.9
"""A second, less what the clocks of Spark's progress leave out."""
WITHHELD_MS = 750.0
"""A quarter of 3 s: the rest is far more than a batch of a row needs, also on a busy machine."""


def log_source(
    spark: SparkSession, client: Client, stream: str, options: dict[str, str]
) -> tuple[DataFrame, Callable[[int], None]]:
    client.create(stream, "n bigint")
    reader = spark.readStream.format("penstock").options(**options)

    def add(n: int) -> None:
        client.append(stream, numbers(n))

    return reader.load(stream), add


def folder_source(
    spark: SparkSession, folder: Path, options: dict[str, str]
) -> tuple[DataFrame, Callable[[int], None]]:
    folder.mkdir()
    reader = spark.readStream.schema("n bigint").options(**options)
    return reader.json(str(folder)), lambda n: put_file(folder, f"part{n}", n)


@pytest.mark.parametrize("kind", ["log", "files"])
def test_batches_of_the_fixed_policy_keep_their_distance_over_any_source(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path, checkpoint: str, kind: str
) -> None:
    frame, add = (
        log_source(spark, client, fresh("fixed"), FIXED)
        if kind == "log"
        else folder_source(spark, tmp_path / "in", FIXED)
    )
    query = started(frame, checkpoint, fresh("at_intervals"))
    try:
        for n in range(40):
            add(n)
            time.sleep(0.1)
        wait_until("all rows are there", lambda: rows_in(spark, query.name) == list(range(40)))
        wait_until("batches have ended", lambda: len(batches(query)) >= 2)
        assert_apart(query)
        assert batches(query)[-1]["sources"][0]["metrics"]["penstock.policy"] == "fixed"
    finally:
        query.stop()


def assert_apart(query: StreamingQuery) -> None:
    """Rows wait for the interval to be over: with the default trigger there were far more."""
    started_s = [begin_s(batch) for batch in batches(query)]
    gaps = [after - before for before, after in itertools.pairwise(started_s)]
    assert gaps
    assert min(gaps) >= CLOSEST_S, gaps


def begin_s(batch: dict[str, Any]) -> float:
    """When a batch was cut: its trigger began with a question that may have been held."""
    began = dt.datetime.fromisoformat(batch["timestamp"])
    return began.timestamp() + float(batch["durationMs"]["latestOffset"]) / 1_000


def test_a_rate_source_is_held_by_the_fixed_policy(
    spark: SparkSession, fresh: Fresh, checkpoint: str
) -> None:
    options = {"policy": "fixed", "interval": "3s", "rowsPerSecond": "10"}
    rate = spark.readStream.format("rate").options(**options).load()
    query = started(rate.select(f.col("value").alias("n")), checkpoint, fresh("held"))
    try:
        wait_until("batches have ended", lambda: len(batches(query)) >= 3)
        rows = rows_in(spark, query.name)
        assert rows == list(range(len(rows)))
        # Left to itself the source begins a batch every second.
        assert all(batch["numInputRows"] >= 20 for batch in batches(query)[1:])
    finally:
        query.stop()


def test_a_row_that_waits_is_visible_by_its_deadline_without_anybody_asking(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    source, sink = fresh("waiting"), fresh("kept")
    client.create(source, "n bigint")
    client.create(sink, "n bigint")
    query = (
        spark.readStream.format("penstock")
        .option("deadline", "3s")
        .load(source)
        .writeStream.format("penstock")
        .option("checkpointLocation", checkpoint)
        .start(sink)
    )
    try:
        latencies = []
        for n in range(4):
            client.append(source, numbers(n))
            begin = time.monotonic()
            wait_for_rows(client, sink, n + 1)
            latencies.append(time.monotonic() - begin)
        # The first batch of a session compiles; the others know what a batch costs.
        assert max(latencies[1:]) < 4.0, latencies
        # They were held back for what their batches did not need; the first had waited for a query.
        withheld_ms = [cut.oldest_age_ms for cut in cuts(client, str(query.id))[:-1]]
        assert max(withheld_ms) > WITHHELD_MS, withheld_ms
        metrics = batches(query)[-1]["sources"][0]["metrics"]
        assert metrics["penstock.policy"] == "deadline"
        assert float(metrics["penstock.deadlineMs"]) == 3_000
    finally:
        query.stop()


def cuts(client: Client, query: str) -> list[AdmissionDecision]:
    """The cuts among the last decisions, newest first."""
    return [decision for decision in client.explain(query).decisions if decision.is_cut]


@pytest.mark.parametrize("policy", ["auto", "running-mean"])
def test_a_policy_without_a_deadline_cuts_all_rows_in_batches_of_its_own(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str, policy: str
) -> None:
    frame, add = log_source(spark, client, fresh("undated"), {"policy": policy})
    query = started(frame, checkpoint, fresh("cut"))
    try:
        add(0)
        wait_until("the first row is there", lambda: rows_in(spark, query.name) == [0])
        for n in range(1, 20):
            add(n)
            time.sleep(0.05)
        wait_until("all rows are there", lambda: rows_in(spark, query.name) == list(range(20)))
        wait_until("a batch has ended", lambda: bool(batches(query)))
        metrics = batches(query)[-1]["sources"][0]["metrics"]
        assert metrics["penstock.policy"] == policy
        made = cuts(client, str(query.id))
        # It learns what a batch takes, and from then on says so at every cut.
        assert len(made) > 1
        assert made[0].predicted_ms is not None
    finally:
        query.stop()


def wait_for_rows(client: Client, stream: str, count: int) -> None:
    wait_until(f"{count} rows are visible", lambda: client.read(stream).num_rows == count)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "data").start()
    yield process
    process.stop()


def test_a_query_goes_on_with_a_server_that_was_started_anew(
    spark: SparkSession, own_server: ServerProcess, fresh: Fresh, tmp_path: Path, checkpoint: str
) -> None:
    options = {"deadline": "1s", "url": own_server.url, "token": own_server.token}
    frame, add = folder_source(spark, tmp_path / "in", options)
    query = started(frame, checkpoint, fresh("restarted"))
    try:
        add(0)
        wait_until("the first row is there", lambda: rows_in(spark, query.name) == [0])
        own_server.kill()
        add(1)
        own_server.start()
        wait_until("the second row is there", lambda: rows_in(spark, query.name) == [0, 1])
    finally:
        query.stop()
