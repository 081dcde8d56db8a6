"""Data that come while a batch is committed: the next batch computes at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.client import Client
from support.servers.processes import wait_until
from support.spark.failpoints import Points

POINT, ONLY = "before_marker", "batch=1"


@pytest.mark.parametrize("is_awaited", [False, True], ids=["nobody waits", "somebody waits"])
@pytest.mark.parametrize("options", [{}, {"policy": "asap"}], ids=["plain", "policy"])
def test_data_that_come_before_the_commit_are_computed_while_it_goes_on(
    spark: SparkSession,
    client: Client,
    points: Points,
    fresh: Callable[[str], str],
    tmp_path: Path,
    options: dict[str, str],
    is_awaited: bool,
) -> None:
    """The next batch computes while the marker is held, whether or not somebody waits for all."""
    given, made = fresh("given"), fresh("made")
    client.create(given, "n bigint")

    def append(number: int) -> None:
        client.append(given, pa.table({"n": pa.array([number], pa.int64())}))

    append(0)
    query = (
        spark.readStream.format("penstock").options(**options).load(given)
        .writeStream.format("penstock")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(made)
    )  # fmt: skip

    def last_batch() -> int:
        progress = query.lastProgress
        return -1 if progress is None else int(progress["batchId"])

    waiting = threading.Thread(target=query.processAllAvailable)
    try:
        query.processAllAvailable()
        points.hold(POINT, [query.id], ONLY)
        append(1)
        wait_until("the marker is held", lambda: points.held(POINT, [query.id], ONLY) != {})
        wait_until("the batch has ended", lambda: last_batch() >= 1)
        if is_awaited:
            waiting.start()
        # Spark asks for more within 10 ms, and hears of nothing, before the next row comes.
        time.sleep(1 if is_awaited else 0.3)
        append(2)
        wait_until("the next batch has ended", lambda: last_batch() >= 2)
        assert waiting.is_alive() == is_awaited
        assert client.read(made).num_rows == 1, "nothing of them is visible before the marker"
    finally:
        points.let_go(POINT)
        query.processAllAvailable()
        query.stop()
    if is_awaited:
        waiting.join()
    # Who waits for all to be processed can read it.
    assert sorted(client.read(made)["n"].to_pylist()) == [0, 1, 2]
