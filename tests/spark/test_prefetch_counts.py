"""Counts of prefetching and the controller's switches, of queries that run on Spark."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.client import Client
from support.servers.processes import wait_until
from support.spark.holdings import wait_for_an_empty_cache

Fresh = Callable[[str], str]

KEY = "spark.penstock.prefetch"
ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
KEYS = 40
BATCHES = 8
SLOW = {
    # State is in files after every batch, and no block of them stays in memory.
    f"{KEY}.reads": "slow1ms",
    f"{ROCKSDB}.blockCacheSizeMB": "0",
    f"{ROCKSDB}.changelogCheckpointing.enabled": "false",
    # A value is in the cache for less than a batch.
    f"{KEY}.cache.bytes": "4000",
    f"{KEY}.hot.threshold": "255",
}


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[Callable[[dict[str, str]], None]]:
    """Settings of the session, for one test."""
    wait_for_an_empty_cache()
    before: dict[str, str | None] = {}

    def change(values: dict[str, str]) -> None:
        for key, value in values.items():
            before.setdefault(key, spark.conf.get(key, None))
            spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


@dataclass
class Counting:
    """Starts queries that count by key, and gives them batches in which all keys come."""

    spark: SparkSession
    client: Client
    fresh: Fresh
    folder: Path
    started: list[StreamingQuery] = field(default_factory=list)

    def __call__(
        self,
        keys: int = KEYS,
        key: str = "n % {keys}",
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> StreamingQuery:
        numbers, counts = self.fresh("numbers"), self.fresh("counts")
        self.client.create(numbers, "n bigint", substreams=1)
        self.client.create(counts, "key bigint, count bigint", substreams=1)
        rows = self.spark.readStream.format("penstock").options(**options).load(numbers)
        query = (
            rows.selectExpr(f"{key.format(keys=keys)} as key")
            .groupBy("key")
            .count()
            .writeStream.format("penstock")
            .outputMode("update")
            .queryName(counts)
            .option("checkpointLocation", str(self.folder / counts))
            .start(counts)
        )
        self.started.append(query)
        for batch in range(BATCHES):
            first = batch * keys
            self.client.append(numbers, [{"n": first + n} for n in range(keys)])
            query.processAllAvailable()
        return query

    def answer(self, query: StreamingQuery) -> dict[int, int]:
        rows = self.client.read(str(query.name)).to_pylist()
        return {row["key"]: row["count"] for row in rows}


@pytest.fixture
def start(spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path) -> Iterator[Counting]:
    counting = Counting(spark, client, fresh, tmp_path)
    yield counting
    for query in counting.started:
        query.stop()


def test_the_counts_of_a_query_arrive_by_operator_and_end_with_it(
    start: Counting, settings: Callable[[dict[str, str]], None]
) -> None:
    settings({KEY: "C", f"{KEY}.hot.threshold": "255"})
    query = start()
    counts = penstock.prefetch_counts(query)
    (operator,) = counts.operators
    assert operator.evictions == 0
    # Each of two partitions has its part of the keys; a batch reads each key once.
    assert operator.hits + operator.misses == BATCHES * KEYS
    assert (operator.operator, operator.active) == (0, ("C",))
    # In the first batch no store is open yet when its keys are hinted.
    hinted = (BATCHES - 1) * KEYS
    assert operator.hinted["C"] == hinted
    assert operator.hint_bytes > hinted * 8
    # From the second batch on all keys are in the cache, so that hints fetch nothing.
    assert operator.hits == hinted
    assert operator.hit_ratio == hinted / (BATCHES * KEYS)
    assert operator.unused_ratio is None
    assert operator.bytes > 0
    assert operator.access_ms(99) is not None
    assert operator.slack_ms("C", 50) is not None
    assert counts.shuffle_bytes > 0
    assert counts.hint_share is not None
    assert operator.switches == ()
    assert counts.relayed.dropped == 0
    again = penstock.prefetch_counts(query)
    assert again.operators[0].hits == operator.hits
    query.stop()
    wait_until("no counts", lambda: penstock.prefetch_counts(query).operators == ())


def test_progress_of_a_query_with_a_policy_has_the_counts_of_all_operators(
    start: Counting, settings: Callable[[dict[str, str]], None]
) -> None:
    settings({KEY: "C", f"{KEY}.hot.threshold": "255"})
    query = start(options={"policy": "asap"})
    (operator,) = penstock.prefetch_counts(query).operators
    progress = [each for each in query.recentProgress if each["numInputRows"] > 0]
    shown = progress[-1]["sources"][0]["metrics"]
    assert int(shown["penstock.prefetchHits"]) == operator.hits > 0
    assert int(shown["penstock.prefetchMisses"]) == operator.misses > 0
    assert (shown["penstock.prefetchUsed"], shown["penstock.prefetchUnused"]) == ("0", "0")
    assert shown["penstock.prefetchFrom"] == "0: C"


def test_the_controller_begins_to_hint_after_reads_of_files_and_says_why(
    start: Counting, settings: Callable[[dict[str, str]], None]
) -> None:
    # On a busy machine fetches may come after the task's own reads, and their values stay unused:
    # how many do is not what is asked here, and no share of them discards a candidate.
    settings({KEY: "auto", **SLOW, f"{KEY}.unused.max": "100"})
    query = start()
    (operator,) = penstock.prefetch_counts(query).operators
    first = operator.switches[0]
    assert "missed the cache" in first.reason
    assert first.active[0] == operator.candidates[0]
    assert first.active[-1] == "D"
    assert operator.active
    assert sum(operator.hinted.values()) > 0
    assert sum(operator.used.values()) > 0
    assert operator.discarded == ()
    access_ms = operator.access_ms(99)
    assert access_ms is not None
    assert access_ms >= 1


def test_the_controller_compares_slack_with_access_that_waits_for_threads(
    start: Counting, settings: Callable[[dict[str, str]], None]
) -> None:
    """Keys that one thread fetches a millisecond each are not here after one of them.

    The cache holds half of the keys, so a batch fetches 100 of them one after the other at least.
    """
    settings({KEY: "auto", **SLOW, f"{KEY}.threads": "1", f"{KEY}.cache.bytes": "36000"})
    query = start(keys=400)
    (operator,) = penstock.prefetch_counts(query).operators
    assert sum(operator.hinted.values()) > 0
    access_ms = operator.access_ms(99)
    assert access_ms is not None
    assert access_ms >= 1
    # It stays with the earliest, or has found that another is in time for all of them.
    for switch in operator.switches[1:]:
        compared = re.search(r"p99 of access, ([\d.]+) ms", switch.reason)
        assert compared is not None, switch.reason
        assert float(compared[1]) >= 50, switch.reason


def test_a_key_that_comes_all_the_time_is_not_hinted_and_answers_stay(
    start: Counting, settings: Callable[[dict[str, str]], None]
) -> None:
    # Three of four rows are of one key.
    settings({KEY: "B", f"{KEY}.hot.threshold": "16"})
    query = start(keys=100, key="if(n % 4 = 0, n % {keys}, 0)")
    (operator,) = penstock.prefetch_counts(query).operators
    assert operator.suppressed > 0
    assert operator.hinted["B"] > 0
    numbers = range(100 * BATCHES)
    assert start.answer(query) == Counter(n % 100 if n % 4 == 0 else 0 for n in numbers)


def test_a_cache_of_more_than_a_quarter_of_the_heap_stops_the_query_with_a_sentence(
    start: Counting, settings: Callable[[dict[str, str]], None]
) -> None:
    settings({KEY: "D", f"{KEY}.cache.bytes": str(2**44)})
    with pytest.raises(StreamingQueryException):
        start()
    # Spark says that state could not be loaded; the sentence is among the causes.
    reason: Any = start.started[-1]._jsq.exception().get()
    sentences = []
    while reason is not None:
        sentences.append(reason.getMessage() or "")
        reason = reason.getCause()
    assert any("more than a quarter of this JVM's heap" in each for each in sentences), sentences


def test_a_query_without_prefetching_has_no_counts(
    start: Counting, settings: Callable[[dict[str, str]], None]
) -> None:
    settings({KEY: "off"})
    counts = penstock.prefetch_counts(start())
    assert counts.operators == ()
    assert counts.shuffle_bytes > 0
