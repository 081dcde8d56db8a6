"""A batch that needs more room on the local disk than its process may take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.client import Client
from support.servers.processes import wait_until

ROOM = "spark.penstock.local.maxBytes"
PARTITIONS = "spark.sql.shuffle.partitions"
TASKS = 6  # more than run at once: those that end must make room for the others
BATCHES = 2
PLACED_WITHIN_MS = 10_000


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
    for batch in range(BATCHES):
        numbers = range(50 * batch, 50 * batch + 50)
        client.append(given, pa.table({"n": pa.array(numbers, pa.int64())}))
    rows = tight.readStream.format("penstock").option("maxRowsPerTrigger", 1).load(given)
    counts = rows.groupBy("n").count()
    query = (
        counts.writeStream.format("penstock")
        .outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(made)
    )
    copies_ms = 0.0

    def has_ended() -> bool:
        # The steps of a run are told until all of it is in the location.
        nonlocal copies_ms
        steps = penstock.commit_steps(query)
        copies_ms = max(copies_ms, steps.get("copy", {}).get("max_ms", 0.0))
        return not query.isActive and not steps

    wait_until("all is in the location", has_ended, 300)
    assert query.exception() is None
    # What a task has dropped to make room for another cannot be copied by it: the driver has waited
    # for the copy in vain, and taken it from the log.
    assert copies_ms >= PLACED_WITHIN_MS
    assert sorted(row["n"] for row in client.read(made).to_pylist()) == list(range(100))
