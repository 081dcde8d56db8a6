"""Checkpoints behind a declared delay, and on a store that fails, hangs or is full."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from penstock.client import Client

Fresh = Callable[[str], str]


MODE = "spark.penstock.commit.mode"
OPERATIONS = 3  # An atomic write is at least create, write and rename.
BATCHES = 6


@pytest.fixture(autouse=True)
def synchronous(spark: SparkSession, faults: Path) -> Iterator[None]:
    """The store is what is looked at here, so every write of it is on the path of the batch."""
    faults.unlink(missing_ok=True)
    spark.conf.set(MODE, "sync")
    yield
    spark.conf.unset(MODE)
    faults.unlink(missing_ok=True)


def count_by_key(
    spark: SparkSession, given: str, made: str, checkpoint: str
) -> list[dict[str, int]]:
    """One AvailableNow run of a stateful query, a commit of its input per batch.

    Returns what each batch took for each of its steps, in milliseconds.
    """
    query = (
        spark.readStream.format("penstock")
        .option("maxRowsPerTrigger", 1)
        .load(given)
        .groupBy("n")
        .count()
        .writeStream.format("penstock")
        .outputMode("update")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(made)
    )
    query.awaitTermination(300)
    return [batch["durationMs"] for batch in query.recentProgress if batch["numInputRows"]]


def feed(client: Client, stream: str, count: int) -> None:
    client.create(stream, "n bigint")
    client.append(stream, pa.table({"n": pa.array(range(count), pa.int64())}))


def test_a_remote_store_takes_its_declared_time(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path
) -> None:
    given, made = fresh("given"), fresh("made")
    feed(client, given, 10)
    took = count_by_key(spark, given, made, f"remote20://{tmp_path}/checkpoint")
    assert client.read(made).num_rows == 10
    assert (tmp_path / "checkpoint" / "commits" / "0").exists()
    for batch in took:
        assert batch["walCommit"] >= 20 * OPERATIONS
        assert batch["commitOffsets"] >= 20 * OPERATIONS


def test_a_remote_store_is_not_on_the_path_of_a_batch_that_commits_behind(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path
) -> None:
    given, made = fresh("given"), fresh("made")
    for _ in range(BATCHES):
        feed(client, given, 10)
    spark.conf.set(MODE, "full")
    took = count_by_key(spark, given, made, f"remote80://{tmp_path}/checkpoint")
    assert client.read(made).num_rows == 10 * BATCHES
    assert (tmp_path / "checkpoint" / "commits" / "0").exists()
    assert len(took) == BATCHES
    # The store is so slow that a busy machine is not taken for a write on the path, of any batch.
    for batch in took:
        assert batch["walCommit"] < 80 * OPERATIONS
        assert batch["commitOffsets"] < 80 * OPERATIONS


@pytest.mark.parametrize("fault", ["fail create", "fail rename", "full"])
def test_a_store_that_fails_stops_the_query_and_loses_nothing(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path, faults: Path, fault: str
) -> None:
    given, made = fresh("given"), fresh("made")
    feed(client, given, 10)
    checkpoint = f"faulty://{tmp_path}/checkpoint"
    count_by_key(spark, given, made, checkpoint)
    feed(client, given, 20)
    faults.write_text(fault)
    with pytest.raises(StreamingQueryException, match="scripted fault"):
        count_by_key(spark, given, made, checkpoint)
    assert client.read(made).num_rows == 10
    faults.unlink()
    count_by_key(spark, given, made, checkpoint)
    latest = {row["n"]: row["count"] for row in client.read(made).to_pylist()}
    assert latest == {n: 2 if n < 10 else 1 for n in range(20)}


def test_a_store_that_hangs_is_waited_for(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path, faults: Path
) -> None:
    given, made = fresh("given"), fresh("made")
    feed(client, given, 10)
    faults.write_text("hang rename")
    began = time.monotonic()
    threading.Timer(1.5, faults.unlink).start()
    count_by_key(spark, given, made, f"faulty://{tmp_path}/checkpoint")
    assert time.monotonic() - began >= 1.5
    assert client.read(made).num_rows == 10
