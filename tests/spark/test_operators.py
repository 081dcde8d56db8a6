"""Every stateful operator of Spark, its commits behind it, stopped and started again in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructField, StructType

import penstock
from penstock.client import Client
from penstock.observe.prefetch_counts import OperatorPrefetch

Fresh = Callable[[str], str]

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 400
KEYS = 8
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
CACHE = "spark.penstock.prefetch.cache"
CACHE_BYTES = f"{CACHE}.bytes"
WRITES = f"{CACHE}.writes"
JOIN = "spark.sql.streaming.join.stateFormatVersion"


def rows(first: int, count: int) -> pa.Table:
    """Row n is of key n % KEYS, n tenths of a second after the start; every tenth comes twice."""
    numbers = [n for n in range(first, first + count) for _ in range(2 if n % 10 == 0 else 1)]
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "key": pa.array([n % KEYS for n in numbers], pa.int64()),
            "at": pa.array(
                [START + timedelta(milliseconds=100 * n) for n in numbers],
                pa.timestamp("us", "UTC"),
            ),
        }
    )


NUMBERS: list[int] = rows(0, ROWS)["n"].to_pylist()
COUNTS = Counter(n % KEYS for n in NUMBERS)
OUT = StructType([StructField("key", LongType()), StructField("count", LongType())])


def aggregate(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").count()


def total(frame: DataFrame) -> DataFrame:
    """All rows in one partition, as any global aggregate has them."""
    return frame.groupBy().count().select(f.lit(0).alias("key"), "count")


def limit(frame: DataFrame) -> DataFrame:
    """No row is cut off: which ones would be depends on the order of the substreams."""
    return frame.select("key", "n").limit(10 * ROWS)


def deduplicate(frame: DataFrame) -> DataFrame:
    return frame.dropDuplicates(["n"]).select("key", "n")


def deduplicate_within_watermark(frame: DataFrame) -> DataFrame:
    return (
        frame.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["n"]).select("key", "n")
    )


def sessions(frame: DataFrame) -> DataFrame:
    gap = f.session_window("at", "5 seconds")
    return frame.groupBy(gap, "key").count().select("key", "count")


def join(frame: DataFrame) -> DataFrame:
    left = frame.select(f.col("n").alias("left_n"), "key")
    right = frame.select(f.col("n").alias("n")).where("n % 2 = 0")
    return left.join(right, f.expr("left_n = n")).select("key", "n")


def count_group(
    key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    count = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
    state.update((count,))
    yield pd.DataFrame({"key": [key[0]], "count": [count]})


def pandas_state(frame: DataFrame) -> DataFrame:
    kept = StructType([StructField("count", LongType())])
    return frame.groupBy("key").applyInPandasWithState(
        count_group, OUT, kept, "update", GroupStateTimeout.NoTimeout
    )


class CountRows(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        kept = StructType([StructField("count", LongType())])
        self._count = handle.getValueState("count", kept)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        counted = self._count.get()
        count = (counted[0] if counted is not None else 0) + sum(len(frame) for frame in rows)
        self._count.update((count,))
        yield pd.DataFrame({"key": [key[0]], "count": [count]})

    def close(self) -> None:
        pass


def transform_with_state(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").transformWithStateInPandas(CountRows(), OUT, "Update", "None")


OPERATORS: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "aggregate": (aggregate, "update"),
    "total": (total, "update"),
    "limit": (limit, "append"),
    "deduplicate": (deduplicate, "append"),
    "deduplicate_within_watermark": (deduplicate_within_watermark, "append"),
    "sessions": (sessions, "complete"),
    "join": (join, "append"),
    "pandas_state": (pandas_state, "update"),
    "transform_with_state": (transform_with_state, "update"),
}
CASES = [
    *((name, {}) for name in OPERATORS),
    # Spark 4.3 begins no join of version 1: only its own tests may write the schema of one.
    ("join", {JOIN: "3"}),
    ("join", {JOIN: "3", FORMAT: "1"}),
    ("join", {JOIN: "4"}),
    ("aggregate", {FORMAT: "1"}),
    ("join", {FORMAT: "1"}),
    ("total", {FORMAT: "1"}),
    ("limit", {FORMAT: "1"}),
    ("aggregate", {CHANGELOG: "false"}),
    ("sessions", {CHANGELOG: "false", FORMAT: "1"}),
]
CACHED: list[tuple[str, dict[str, str]]] = [
    # Ample, of one entry, and with writes that stay in it.
    ("join", {CACHE: "timestamp"}),
    ("deduplicate", {CACHE: "lru", CACHE_BYTES: "250"}),
    ("aggregate", {CACHE: "timestamp", WRITES: "back"}),
    ("join", {CACHE: "clock", WRITES: "back", CACHE_BYTES: "9000", JOIN: "3"}),
    ("deduplicate_within_watermark", {CACHE: "timestamp", WRITES: "back", CACHE_BYTES: "250"}),
]


def expected(name: str) -> Counter[Any]:
    if name.startswith("deduplicate"):
        return Counter((n % KEYS, n) for n in set(NUMBERS))
    if name == "join":
        counts = Counter(NUMBERS)
        return Counter({(n % KEYS, n): count * count for n, count in counts.items() if n % 2 == 0})
    if name == "limit":
        return Counter((n % KEYS, n) for n in NUMBERS)
    if name == "total":
        return Counter({(0, len(NUMBERS)): 1})
    return Counter(dict.fromkeys(COUNTS.items(), 1))


def seen(client: Client, stream: str, mode: str) -> Counter[Any]:
    rows = client.read(stream).to_pylist()
    if mode == "append":
        return Counter(tuple(row.values()) for row in rows)
    latest = {row["key"]: row["count"] for row in rows}
    return Counter(dict.fromkeys(latest.items(), 1))


def rows_kept(name: str) -> int:
    """How many rows of state there are at the end."""
    if name.startswith("deduplicate"):
        return ROWS
    if name == "join":
        # Both sides keep the even numbers: Spark filters the left as the right.
        return 2 * sum(n % 2 == 0 for n in NUMBERS)
    if name in ("total", "limit"):
        return 1
    return KEYS


@pytest.fixture
def session_settings(
    spark: SparkSession, request: pytest.FixtureRequest
) -> Iterator[dict[str, str]]:
    """Settings for one test; the session is as it was afterwards."""
    settings: dict[str, str] = request.getfixturevalue("settings")
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield settings
    for key, old in before.items():
        if old is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, old)


def labels(cases: Sequence[tuple[str, dict[str, str]]]) -> list[str]:
    return [f"{name}-{'-'.join(settings.values()) or 'default'}" for name, settings in cases]


@pytest.mark.parametrize(("name", "settings"), CASES, ids=labels(CASES))
@pytest.mark.usefixtures("session_settings")
def test_an_operator_is_right_across_a_restart(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path, name: str, settings: object
) -> None:
    run_across_a_restart(spark, client, fresh, tmp_path, name)


@pytest.mark.parametrize(("name", "settings"), CACHED, ids=labels(CACHED))
@pytest.mark.usefixtures("session_settings")
def test_the_same_with_a_cache_in_front_of_its_state_that_is_in_use(
    spark: SparkSession,
    client: Client,
    fresh: Fresh,
    tmp_path: Path,
    name: str,
    settings: dict[str, str],
) -> None:
    # Python workers import this module for its functions, and do not have the tests' `support`.
    from support.spark.holdings import wait_for_an_empty_cache

    # Of the stores that are open the first one has decided on the cache.
    wait_for_an_empty_cache()
    (counts,) = run_across_a_restart(spark, client, fresh, tmp_path, name, counts_reads=True)
    assert counts.hits + counts.misses > 0
    # A key that a batch has twice is read twice, and what is ample has it then.
    is_ample = CACHE_BYTES not in settings
    assert (counts.evictions == 0) == is_ample
    assert counts.hits > 0 or not is_ample
    assert (counts.kept_writes > 0) == (settings.get(WRITES) == "back")


def run_across_a_restart(
    spark: SparkSession,
    client: Client,
    fresh: Fresh,
    tmp_path: Path,
    name: str,
    *,
    counts_reads: bool = False,
) -> tuple[OperatorPrefetch, ...]:
    """Runs an operator in two parts, and compares all that it has left; its counts, if asked for,
    are those of the second part."""
    given, made = fresh("given"), fresh("made")
    client.create(given, "n bigint, key bigint, at timestamp", substreams=2, key="key")
    operator, mode = OPERATORS[name]
    checkpoint = tmp_path / "checkpoint"
    counts: tuple[OperatorPrefetch, ...] = ()
    for part in range(2):
        for batch in range(2):
            first = (part * 2 + batch) * ROWS // 4
            client.append(given, rows(first, ROWS // 4))
        frame = operator(
            spark.readStream.format("penstock").option("maxRowsPerTrigger", 1).load(given)
        )
        writer = (
            frame.writeStream.format("penstock")
            .outputMode(mode)
            .option("checkpointLocation", str(checkpoint))
        )
        if counts_reads:
            # Counts are those of a running query.
            query = writer.start(made)
            query.processAllAvailable()
            counts = penstock.prefetch_counts(query).operators
            query.stop()
        else:
            query = writer.trigger(availableNow=True).start(made)
            assert query.awaitTermination(300)
    assert query.lastProgress is not None
    (last,) = query.lastProgress["stateOperators"]
    assert last["numRowsTotal"] == rows_kept(name)
    commits = {int(p.name) for p in (checkpoint / "commits").iterdir() if p.name.isdigit()}
    assert {0, 1, 2, 3} <= commits
    about = spark.read.format("state-metadata").load(str(checkpoint)).collect()
    expected_there = (last["operatorName"], max(commits))
    assert {(row.operatorName, row.maxBatchId) for row in about} == {expected_there}
    if name == "aggregate":
        stored = spark.read.format("statestore").load(str(checkpoint))
        assert dict(stored.select("key.key", "value.count").collect()) == COUNTS
    assert seen(client, made, mode) == expected(name)
    # The session's provider is ours; what is written down is Spark's, for Spark to go on with.
    first_offsets = (checkpoint / "offsets" / "0").read_text()
    assert '.RocksDBStateStoreProvider"' in first_offsets
    assert "Penstock" not in first_offsets
    return counts
