"""Checkpoints in a store that cannot rename, behind the file manager that a user has for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.client import Client
from penstock.settings import plugin

MANAGER = plugin.CHECKPOINT_FILE_MANAGER.name
UPLOADED = "penstock.testing.UploadedFiles"
MODE = plugin.COMMIT_MODE.name
SNAPSHOT_AFTER = "spark.sql.streaming.stateStore.minDeltasForSnapshot"
ROWS = 10


@pytest.fixture
def without_rename(spark: SparkSession, faults: Path) -> Iterator[SparkSession]:
    """A session like the others', over a store that refuses every rename."""
    faults.write_text("fail rename\n")
    yield spark.newSession()
    faults.unlink()


@pytest.mark.parametrize("mode", ["full", "asyncckpt", "sync"])
@pytest.mark.parametrize("sink", ["penstock", "parquet"])
def test_a_query_runs_and_restarts_where_nothing_can_be_renamed(
    without_rename: SparkSession,
    client: Client,
    fresh: Callable[[str], str],
    tmp_path: Path,
    mode: str,
    sink: str,
) -> None:
    session = without_rename
    for key, value in {MANAGER: UPLOADED, MODE: mode, SNAPSHOT_AFTER: "2"}.items():
        session.conf.set(key, value)
    given, made = fresh("given"), fresh("made")
    client.create(given, "n bigint")
    output = made if sink == "penstock" else f"faulty://{tmp_path}/output"
    for _ in range(2):
        for _ in range(2):
            client.append(given, pa.table({"n": pa.array(range(ROWS), pa.int64())}))
        rows = session.readStream.format("penstock").option("maxRowsPerTrigger", 1).load(given)
        writer = rows.dropDuplicates(["n"]).writeStream.format(sink).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", f"faulty://{tmp_path}/checkpoint")
        assert writer.start(output).awaitTermination(300)
    shown = (
        client.read(made)["n"].to_pylist()
        if sink == "penstock"
        else [row.n for row in session.read.parquet(output).collect()]
    )
    assert sorted(shown) == list(range(ROWS))


def test_a_file_manager_that_is_ours_cannot_stand_behind_ours(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    session = spark.newSession()
    ours = str(spark.conf.get("spark.sql.streaming.checkpointFileManagerClass"))
    session.conf.set(MANAGER, ours)
    given = fresh("given")
    client.create(given, "n bigint")
    writer = session.readStream.format("penstock").load(given).writeStream.format("penstock")
    with pytest.raises(Exception, match=f"{MANAGER} is {ours}"):
        writer.option("checkpointLocation", str(tmp_path / "c")).start(fresh("made"))
