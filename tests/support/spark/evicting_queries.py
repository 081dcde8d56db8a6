"""Queries that evict by a watermark, driven batch by batch, and all that Spark reports of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.client import Client
from penstock.observe.batch_ledger import BatchSteps
from support.servers.processes import wait_until

START = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = 6
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
STOCK = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.penstock.eviction": "spark",
    "spark.penstock.batch.watermark": "spark",
}
"""Spark's own store, scans and code."""
REPORTED = ("numRowsTotal", "numRowsUpdated", "numRowsRemoved", "numRowsDroppedByWatermark")


def rows(number: int, from_s: int) -> pa.Table:
    """Commit `number`: each key twice within twelve seconds, and a repeat; from the third on also a
    row that is soon expired and one that is late."""
    drawn = [(key, from_s + 2 * key + again) for key in range(KEYS) for again in (0, 1)]
    drawn.append((0, from_s))
    if number >= 2:
        drawn += [(1, from_s - 41), (2, from_s - 90)]
    return pa.table(
        {
            "n": pa.array([100 * number + place for place in range(len(drawn))], pa.int64()),
            "key": pa.array([key for key, _ in drawn], pa.int64()),
            "at": pa.array(
                [START + timedelta(seconds=at_s) for _, at_s in drawn], pa.timestamp("us", "UTC")
            ),
        }
    )


def per_window(frame: DataFrame) -> DataFrame:
    return frame.groupBy(f.window("at", "10 seconds"), "key").agg(
        f.count("*").alias("rows"), f.max("n").alias("last")
    )


def per_window_failing(frame: DataFrame) -> DataFrame:
    """The same, failing the first attempt of the tasks that come to rows of the second commit."""

    # Without types: Spark would take them for those of an Arrow function.
    def failing_once(last):  # type: ignore[no-untyped-def]
        from pyspark import TaskContext

        context = TaskContext.get()
        if last >= 100 and context is not None and context.attemptNumber() == 0:
            raise RuntimeError("planted")
        return last

    failing = f.udf(failing_once, "bigint", useArrow=False)
    return per_window(frame).withColumn("last", failing("last"))


def per_second(frame: DataFrame) -> DataFrame:
    return frame.groupBy("at", "key").agg(f.max("n").alias("last"))


def distinct(frame: DataFrame) -> DataFrame:
    return frame.dropDuplicates(["key", "at"])


def distinct_within(frame: DataFrame) -> DataFrame:
    return frame.dropDuplicatesWithinWatermark(["key"])


def sides(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    left = frame.where("n % 3 != 0").select("n", "key", "at")
    right = frame.where("n % 3 = 0").select(
        f.col("n").alias("other"), f.col("key").alias("other_key"), f.col("at").alias("other_at")
    )
    return left, right


def join_by_key(frame: DataFrame) -> DataFrame:
    left, right = sides(frame)
    return left.join(right, f.expr("key = other_key and at = other_at"))


def join_by_interval(frame: DataFrame) -> DataFrame:
    left, right = sides(frame)
    within = "other_at between at - interval 5 seconds and at + interval 5 seconds"
    return left.join(right, f.expr(f"key = other_key and {within}"), "left_outer")


@dataclass(frozen=True)
class Case:
    """A query, and how many scans for eviction each of its partitions makes in a batch."""

    frame: Callable[[DataFrame], DataFrame]
    mode: str = "append"
    scans: int = 1
    conf: Mapping[str, str] = field(default_factory=dict)
    sides: Sequence[str] = ()
    ours: Callable[[DataFrame], DataFrame] | None = None
    """What is run with our store in place of `frame`; the answers are to be the same."""


CASES = {
    "windows, append": Case(per_window, ours=per_window_failing),
    "times, update": Case(per_second, "update"),
    "deduplication": Case(distinct),
    "deduplication within the watermark": Case(distinct_within),
    "join by a time in its key, format 3": Case(
        join_by_key, scans=2, conf={JOIN_FORMAT: "3"}, sides=("left", "right")
    ),
    "outer join within an interval, format 2": Case(
        join_by_interval, scans=2, conf={JOIN_FORMAT: "2"}, sides=("left", "right")
    ),
    "outer join within an interval, format 3": Case(
        join_by_interval, scans=2, conf={JOIN_FORMAT: "3"}, sides=("left", "right")
    ),
}


@dataclass
class Driven:
    """What one query answered and reported, by batch."""

    answers: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)
    reported: dict[int, tuple[int, ...]] = field(default_factory=dict)
    ledgers: dict[int, BatchSteps] = field(default_factory=dict)
    firsts: list[int] = field(default_factory=list)
    """The first batch after each start."""
    notes: set[str] = field(default_factory=set)

    def removed(self, batch: int) -> int:
        return self.reported[batch][REPORTED.index("numRowsRemoved")]


@contextmanager
def settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """The session has these settings within; it is as it was afterwards."""
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


class Driver:
    """Runs a case over a stream of its own, one commit after the other."""

    def __init__(self, spark: SparkSession, client: Client, stream: str, folder: Path) -> None:
        self._spark = spark
        self._client = client
        self._stream = stream
        self.checkpoint = str(folder / stream)
        self.driven = Driven()
        self._commits = 0
        client.create(stream, "n bigint, key bigint, at timestamp", substreams=1)

    def run(
        self,
        frame: Callable[[DataFrame], DataFrame],
        mode: str,
        conf: Mapping[str, str],
        commits: Sequence[int],
    ) -> None:
        """Starts the query, gives it the commits one by one, and stops it."""
        with settings(self._spark, conf):
            source = self._spark.readStream.format("penstock").load(self._stream)
            query = (
                frame(source.withWatermark("at", "30 seconds"))
                .writeStream.foreachBatch(self._collect)
                .outputMode(mode)
                .option("checkpointLocation", self.checkpoint)
                .start()
            )
        try:
            for from_s in commits:
                self._client.append(self._stream, rows(self._commits, from_s))
                self._commits += 1
                query.processAllAvailable()
            self._note(query)
        finally:
            query.stop()

    def _collect(self, frame: DataFrame, batch: int) -> None:
        self.driven.answers[batch] = sorted((tuple(row) for row in frame.collect()), key=str)

    def _note(self, query: StreamingQuery) -> None:
        progress = {
            int(p["batchId"]): p for p in query.recentProgress if int(p["batchId"]) in self._seen
        }
        self.driven.firsts.append(min(progress))
        for batch, each in progress.items():
            (operator,) = each["stateOperators"]
            self.driven.reported[batch] = tuple(operator[name] for name in REPORTED)
        # Spark tells its listeners on a thread of their own.
        wait_until(
            "the ledgers",
            lambda: progress.keys() <= {each.batch for each in penstock.batch_steps(query)},
        )
        self.driven.ledgers |= {each.batch: each for each in penstock.batch_steps(query)}
        self.driven.notes |= {n.text for n in penstock.plan_notes(query) if n.rule == "eviction"}

    @property
    def _seen(self) -> set[int]:
        return set(self.driven.answers)

    def state(self, sides: Sequence[str]) -> list[str]:
        """All rows of state in the checkpoint, as texts in their order."""
        reader = self._spark.read.format("statestore")
        loaded = [reader.option("joinSide", side).load(self.checkpoint) for side in sides] or [
            reader.load(self.checkpoint)
        ]
        return sorted(str(row) for frame in loaded for row in frame.drop("partition_id").collect())
