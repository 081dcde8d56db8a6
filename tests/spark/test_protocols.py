"""Protocols to compare with markers: each a setting, and what a reader sees with each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from penstock.client import Address, Client
from penstock.spark.server_process import OwnCoordinator
from support.servers.processes import ServerProcess, wait_until

Fresh = Callable[[str], str]

PROTOCOL = "spark.penstock.commit.protocol"
COORDINATOR = "spark.penstock.coordinator.url"
BATCHES = 4
ROWS = 50


@pytest.fixture(scope="module")
def coordinator(server: ServerProcess) -> Iterator[OwnCoordinator]:
    process = OwnCoordinator(Address(server.url, server.token))
    yield process
    process.stop()


@pytest.fixture
def protocol(spark: SparkSession) -> Iterator[Callable[..., None]]:
    def use(name: str, coordinator: str | None = None) -> None:
        spark.conf.set(PROTOCOL, name)
        if coordinator is not None:
            spark.conf.set(COORDINATOR, coordinator)

    yield use
    spark.conf.unset(PROTOCOL)
    spark.conf.unset(COORDINATOR)


def counted(spark: SparkSession, client: Client, fresh: Fresh, folder: Path) -> tuple[str, str]:
    """Runs a stateful query over some batches; its id and its output."""
    given, made = fresh("given"), fresh("made")
    client.create(given, "n bigint, key bigint")
    for i in range(BATCHES):
        n = range(i * ROWS, (i + 1) * ROWS)
        client.append(given, pa.table({"n": list(n), "key": [j % 5 for j in n]}))
    frame = spark.readStream.format("penstock").option("maxRowsPerTrigger", ROWS).load(given)
    writer = frame.groupBy("key").count().writeStream.format("penstock").outputMode("update")
    writer = writer.option("substreams", 2).option("key", "key")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(made)
    query.awaitTermination(300)
    return str(query.id), made


def assert_counted(client: Client, made: str) -> None:
    counts: dict[int, list[int]] = {}
    for row in client.read(made).to_pylist():
        counts.setdefault(row["key"], []).append(row["count"])
    step = ROWS // 5
    assert counts == {key: [step * (i + 1) for i in range(BATCHES)] for key in range(5)}


def steps_of(server: ServerProcess, query: str) -> list[dict[str, Any]]:
    steps = [json.loads(record.payload) for record in server.client().records("transactions")]
    return [step for step in steps if step["query"] == query]


def test_a_transaction_registers_prepares_commits_and_ends_with_an_append_each(
    spark: SparkSession,
    client: Client,
    server: ServerProcess,
    fresh: Fresh,
    coordinator: OwnCoordinator,
    protocol: Callable[..., None],
    tmp_path: Path,
) -> None:
    protocol("transaction", coordinator.url)
    query, made = counted(spark, client, fresh, tmp_path)
    assert_counted(client, made)
    # Phase two of the last batch follows behind the query.
    wait_until("all are done", lambda: steps_of(server, query)[-1]["what"] == "done")
    steps = steps_of(server, query)
    for batch in range(BATCHES):
        whats = [step["what"] for step in steps if step["batch"] == batch]
        assert whats[-2:] == ["prepare", "done"]
        assert set(whats[:-2]) == {"register"}
        named = {
            tuple(place)
            for step in steps
            if step["batch"] == batch
            for place in step.get("substreams", ())
        }
        assert named == {(made, 0), (made, 1)}
        assert steps.index(next(s for s in steps if s["batch"] == batch)) == sum(
            1 for s in steps if s["batch"] < batch
        ), "a transaction begins when the one before it is done"
    for place in (0, 1):
        committed = server.client().records(f"committed/{made}/{place}")
        assert len(committed) == BATCHES


def test_a_coordinator_that_is_killed_finishes_what_was_prepared(
    spark: SparkSession,
    client: Client,
    server: ServerProcess,
    fresh: Fresh,
    protocol: Callable[..., None],
    tmp_path: Path,
) -> None:
    first = OwnCoordinator(Address(server.url, server.token))
    protocol("transaction", first.url)
    query, made = counted(spark, client, fresh, tmp_path)
    first.kill()
    # As if it had been killed between its two phases: prepared, and nothing after it.
    instance = client.query(query)["instance"]
    marker = {"instance": instance, "batch": BATCHES, "writes": [], "positions": {}}
    step = {"what": "prepare", "query": query, "instance": instance, "batch": BATCHES}
    client.append_record(["transactions"], json.dumps({**step, "marker": marker}).encode())
    second = OwnCoordinator(Address(server.url, server.token))
    try:
        wait_until(
            "the batch is committed", lambda: client.query(query)["marker"]["batch"] == BATCHES
        )
    finally:
        second.stop()
    assert_counted(client, made)


@pytest.mark.parametrize("name", ["marker", "aligned", "unsafe"])
def test_the_answer_is_the_same_with_each_protocol(
    spark: SparkSession,
    client: Client,
    fresh: Fresh,
    protocol: Callable[..., None],
    tmp_path: Path,
    name: str,
) -> None:
    protocol(name)
    query, made = counted(spark, client, fresh, tmp_path)
    assert_counted(client, made)
    markers = client.markers(query)
    assert len(markers) == BATCHES
    # Nothing is left for a marker to show where rows show by themselves.
    assert (sum(m["rows"] for m in markers) == 0) == (name == "unsafe")


def test_a_protocol_that_is_not_there_is_refused(
    spark: SparkSession,
    client: Client,
    fresh: Fresh,
    protocol: Callable[..., None],
    tmp_path: Path,
) -> None:
    protocol("hope")
    refused = (StreamingQueryException, Py4JJavaError)
    with pytest.raises(refused, match="it takes marker, transaction, aligned"):
        counted(spark, client, fresh, tmp_path)
    protocol("transaction")
    with pytest.raises(refused, match="needs a coordinator"):
        counted(spark, client, fresh, tmp_path / "other")
