"""Spark's file sink when a batch that it has is run again: nobody who follows it sees a row twice.

Between the entry of a batch in the sink's log and `commits/N` a driver may die. What that leaves is
made here by deleting `commits/N`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.client import Client
from support.servers.processes import wait_until

Fresh = Callable[[str], str]

FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
MODE = "spark.penstock.commit.mode"
COMPACT = "spark.sql.streaming.fileSink.log.compactInterval"
KEPT = (FORMAT, MODE, COMPACT)
LAST = 1
"""The batch that is run again: the second of two, so that there is state before it."""


@pytest.fixture(autouse=True)
def as_before(spark: SparkSession) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in KEPT}
    yield
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


class FilesJob:
    """A query from a stream into files, and another that follows the files."""

    def __init__(self, spark: SparkSession, client: Client, fresh: Fresh, folder: Path) -> None:
        self._spark = spark
        self._client = client
        self._given, self._followed = fresh("given"), fresh("followed")
        self._output = folder / "output"
        self._folder = folder
        self.commits = folder / "checkpoint" / "commits"
        self._sent = 0
        client.create(self._given, "n bigint")

    def feed(self) -> None:
        numbers = range(self._sent, self._sent + 10)
        self._client.append(self._given, pa.table({"n": pa.array(numbers, pa.int64())}))
        self._sent += 10

    def run(self, *, stateful: bool) -> None:
        """To the end of the input, a commit of it per batch."""
        reader = self._spark.readStream.format("penstock").option("maxRowsPerTrigger", 1)
        rows = reader.load(self._given)
        frame = rows.dropDuplicates(["n"]) if stateful else rows
        self._finish(frame, "parquet", str(self._output), "checkpoint")

    def follow(self) -> list[int]:
        """All rows that a query has seen which takes every file that it has not taken before."""
        files = self._spark.readStream.schema("n bigint").parquet(str(self._output))
        self._finish(files, "penstock", self._followed, "follower")
        return sorted(self._client.read(self._followed)["n"].to_pylist())

    def _finish(self, frame: DataFrame, kind: str, target: str, checkpoint: str) -> None:
        writer = frame.writeStream.format(kind).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self._folder / checkpoint)).start(target)
        assert query.awaitTermination(300)

    def all_sent(self) -> list[int]:
        return list(range(self._sent))

    def entry(self, batch: int) -> bytes:
        log = self._output / "_spark_metadata"
        (file,) = (file for file in log.glob(f"{batch}*") if file.suffix in ("", ".compact"))
        return file.read_bytes()

    def named_files(self, batches: int) -> set[str]:
        lines = [line for n in range(batches) for line in self.entry(n).splitlines()[1:]]
        return {Path(unquote(urlparse(json.loads(line)["path"]).path)).name for line in lines}

    def files(self) -> set[str]:
        return {file.name for file in self._output.glob("*.parquet")}


CASES = {
    "without state": (False, "2", "full", "10"),
    "format 1": (True, "1", "full", "10"),
    "format 1, asyncckpt": (True, "1", "asyncckpt", "10"),
    "format 1, sync": (True, "1", "sync", "10"),
    "format 2": (True, "2", "full", "10"),
    "format 2, sync": (True, "2", "sync", "10"),
    "format 2, in an entry with those before it": (True, "2", "full", str(LAST + 1)),
}


@pytest.mark.parametrize(("stateful", "version", "mode", "compact"), CASES.values(), ids=CASES)
def test_a_batch_that_the_file_sink_has_shows_its_rows_once_when_it_is_run_again(
    spark: SparkSession,
    client: Client,
    fresh: Fresh,
    tmp_path: Path,
    stateful: bool,
    version: str,
    mode: str,
    compact: str,
) -> None:
    for key, value in zip(KEPT, (version, mode, compact), strict=True):
        spark.conf.set(key, value)
    job = FilesJob(spark, client, fresh, tmp_path)
    job.feed()
    job.feed()
    job.run(stateful=stateful)
    assert job.follow() == job.all_sent()
    first = job.entry(LAST)
    last_commit = job.commits / str(LAST)
    wait_until(f"{last_commit} is there", last_commit.exists)
    last_commit.unlink()
    last_commit.with_name(f".{LAST}.crc").unlink(missing_ok=True)

    job.feed()
    job.run(stateful=stateful)
    assert job.entry(LAST) == first, "the entry that readers have seen was replaced"
    assert job.follow() == job.all_sent()
    assert job.files() == job.named_files(LAST + 2), "files that no entry names were left"
