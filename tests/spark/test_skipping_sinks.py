"""Sinks that do nothing about a batch whose id they have seen, when such a batch is run again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from penstock.client import Client
from support.servers.processes import wait_until

SINK = "penstock.testing.SeenBatchesSink"
MODE = "spark.penstock.commit.mode"
ACCEPT = "spark.penstock.commit.acceptFormat2"
KEYS = 5
ROWS = 10
LAST = 1
"""The batch that is run again: the second of two, so that there is state before it."""


@pytest.fixture(params=["full", "asyncckpt", "sync"])
def mode(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    spark.conf.set(MODE, request.param)
    yield request.param
    spark.conf.unset(MODE)


@pytest.mark.usefixtures("mode")
def test_a_query_goes_on_after_a_batch_that_its_sink_has_taken_and_skips(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    """The driver dies when the sink has taken the batch and Spark has not committed it."""
    given = fresh("given")
    client.create(given, "n bigint")
    commits, output = tmp_path / "checkpoint" / "commits", tmp_path / "output"

    def feed() -> None:
        client.append(given, pa.table({"n": pa.array(range(ROWS), pa.int64())}))

    def run() -> None:
        rows = spark.readStream.format("penstock").option("maxRowsPerTrigger", 1).load(given)
        writer = rows.selectExpr(f"n % {KEYS} as key").groupBy("key").count().writeStream
        writer = writer.outputMode("update").format(SINK).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(commits.parent)).start(str(output))
        assert query.awaitTermination(300)

    def counts(batch: int) -> dict[int, int]:
        lines = (output / str(batch)).read_text().splitlines()
        return {row["key"]: row["count"] for row in map(json.loads, lines)}

    feed()
    feed()
    run()
    wait_until(f"batch {LAST} is committed", (commits / str(LAST)).exists)
    (commits / str(LAST)).unlink()
    (commits / f".{LAST}.crc").unlink(missing_ok=True)
    taken = (output / str(LAST)).stat().st_mtime_ns

    feed()
    run()
    assert (output / str(LAST)).stat().st_mtime_ns == taken, "the sink did not skip the batch"
    for batch in range(LAST + 2):
        assert counts(batch) == dict.fromkeys(range(KEYS), ROWS // KEYS * (batch + 1))


def test_a_checkpoint_in_format_2_is_refused_unless_its_user_accepts_it(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    """It was begun with a sink that skips nothing."""
    given, output = fresh("given"), tmp_path / "output"
    client.create(given, "n bigint")
    own = spark.newSession()

    def run(sink: str) -> None:
        client.append(given, pa.table({"n": pa.array(range(ROWS), pa.int64())}))
        counts = own.readStream.format("penstock").load(given).groupBy("n").count()
        writer = counts.writeStream.outputMode("update").format(sink).trigger(availableNow=True)
        location = str(tmp_path / "checkpoint")
        query = writer.option("checkpointLocation", location).start(str(output))
        assert query.awaitTermination(300)

    run("noop")
    with pytest.raises(StreamingQueryException, match="format_2_with_skips") as refused:
        run(SINK)
    for way_out in ("with a new checkpoint location", f"set {ACCEPT}=true"):
        assert way_out in str(refused.value)
    assert not output.exists()
    own.conf.set(ACCEPT, "true")
    run(SINK)
    counted = [json.loads(line)["count"] for line in (output / "1").read_text().splitlines()]
    assert counted == [3] * ROWS
