"""A batch that needs more room on the local disk than its process may take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.client import Client

ROOM = "spark.penstock.local.maxBytes"
PARTITIONS = "spark.sql.shuffle.partitions"
TASKS = 6  # more than run at once: those that end must make room for the others


@pytest.fixture
def tight(spark: SparkSession) -> SparkSession:
    """A session like the others', with next to no room."""
    own = spark.newSession()
    own.conf.set(ROOM, "1")
    own.conf.set(PARTITIONS, str(TASKS))
    return own


def test_a_batch_of_more_state_than_there_is_room_for_ends_with_the_log(
    tight: SparkSession, client: Client, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    given, made = fresh("given"), fresh("made")
    client.create(given, "n bigint", substreams=2)
    client.append(given, pa.table({"n": pa.array(range(100), pa.int64())}))
    counts = tight.readStream.format("penstock").load(given).groupBy("n").count()
    query = (
        counts.writeStream.format("penstock")
        .outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(made)
    )
    assert query.awaitTermination(300)
    assert sorted(row["n"] for row in client.read(made).to_pylist()) == list(range(100))
