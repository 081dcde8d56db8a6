"""`penstock.enrich` on Spark: answers, failures, counts, and values that are there beforehand."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import penstock
from penstock.client import Client
from penstock.errors import BadCall
from support.lookup_stores import SilentServer
from support.servers.processes import wait_until
from support.servers.redis_server import RedisServer

AT = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture(scope="module")
def url(redis_server: RedisServer) -> str:
    import redis

    client = redis.Redis.from_url(redis_server.url)
    client.mset({f"n:{n}": f"value {n}" for n in range(100_000)})
    client.hset("h:1", mapping={"name": "one", "price": "1.5", "seen_at": "2026-01-02T03:04:05Z"})
    client.set("bad:1", "no number")
    client.close()
    return redis_server.url


def numbers(spark: SparkSession, *keys: int | None) -> DataFrame:
    return spark.createDataFrame([(key,) for key in keys], "key int")


def collected(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*columns).collect()]


def test_rows_of_a_static_frame_get_their_values(spark: SparkSession, url: str) -> None:
    store = penstock.Redis(url, "value string", prefix="n:")
    many = spark.range(50_000).withColumn("key", f.col("id") % 7)
    values = penstock.enrich(many, store, on="key", name="many")
    assert values.where("value = concat('value ', key)").count() == 50_000
    counts = penstock.enrich_counts("many")
    assert counts.rows == 50_000
    assert counts.misses + counts.waited + counts.hits >= 7
    assert counts.misses <= 2 * 7, "each worker asks once"
    assert counts.round_trip_ms(0.5) is not None
    assert list(counts.on_path) == [-1]


def test_missing_keys_and_nulls_are_what_was_chosen(spark: SparkSession, url: str) -> None:
    store = penstock.Redis(url, "value string", prefix="n:")
    frame = numbers(spark, 1, -1, None)
    kept = penstock.enrich(frame, store, on="key")
    assert collected(kept.orderBy("key"), "key", "value") == [
        (None, None), (-1, None), (1, "value 1")
    ]  # fmt: skip
    dropped = penstock.enrich(frame, store, on="key", missing="drop")
    assert collected(dropped, "value") == [("value 1",)]
    with pytest.raises(PySparkException, match="1 keys of key are not in Redis"):
        penstock.enrich(frame, store, on="key", missing="error").collect()


def test_a_hash_becomes_typed_columns(spark: SparkSession, url: str) -> None:
    columns = "name string, price double, seen_at timestamp, other int"
    store = penstock.Redis(url, columns, values="hash", prefix="h:")
    enriched = penstock.enrich(numbers(spark, 1), store, on="key")
    assert enriched.schema["seen_at"].dataType.typeName() == "timestamp"
    row = enriched.withColumn("at", f.col("seen_at").cast("long")).collect()[0]
    assert (row.name, row.price, row.at, row.other) == ("one", 1.5, 1_767_323_045, None)


def test_a_value_of_the_wrong_type_fails_the_query_by_name(spark: SparkSession, url: str) -> None:
    store = penstock.Redis(url, "price double", prefix="bad:")
    with pytest.raises(PySparkException, match=r"the key 1 in Redis.*is no double; change"):
        penstock.enrich(numbers(spark, 1), store, on="key").collect()


@pytest.mark.parametrize("failure", ["null", "drop", "error"])
def test_a_store_that_is_silent_or_gone_ends_as_chosen_and_in_time(
    spark: SparkSession, failure: str
) -> None:
    begun = time.monotonic()
    with SilentServer() as silent:
        for where in (NOWHERE, silent.url):
            enriched = penstock.enrich(
                numbers(spark, 1),
                penstock.Redis(where, "value string"),
                on="key",
                failure=failure,
                timeout_s=0.2,
                retries=1,
                name="down",
            )
            if failure == "error":
                with pytest.raises(PySparkException, match="1 keys could not be looked up"):
                    enriched.collect()
            else:
                assert collected(enriched, "value") == ([(None,)] if failure == "null" else [])
                counts = penstock.enrich_counts("down")
                assert (counts.failed, counts.retries) == (1, 1)
    assert time.monotonic() - begun < 120


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"on": "kay"}, "no column 'kay' for on; it has key"),
        ({"time": "at"}, "no column 'at' for time"),
        ({"time": "key"}, "time is a timestamp"),
        ({"missing": "skip"}, "missing is 'skip'; it is one of null, drop, error"),
        ({"cache": "fifo"}, "cache is 'fifo'"),
        ({"cache": "off", "ahead": True}, "which is off"),
        ({"cache_bytes": 0}, "cache_bytes is 0"),
        ({"timeout_s": 0}, "timeout_s is 0"),
        ({"retries": -1}, "retries is -1"),
        ({"in_flight": 0}, "in_flight is 0"),
        ({"ttl_s": 0}, "ttl_s is 0"),
        ({"ahead": True}, "the frame reads no stream of the log"),
        ({"store": "redis://x"}, "the store is a str"),
        ({"store": penstock.Redis(NOWHERE, "KEY string")}, "has KEY already"),
    ],
)
def test_a_call_that_cannot_work_is_refused_in_a_sentence(
    spark: SparkSession, changes: dict[str, Any], sentence: str
) -> None:
    call = {"store": penstock.Redis(NOWHERE, "value string"), "on": "key", **changes}
    with pytest.raises(BadCall, match=sentence):
        penstock.enrich(numbers(spark, 1), call.pop("store"), **call)


def test_keys_of_types_without_a_plain_text_and_unknown_names_are_refused(
    spark: SparkSession,
) -> None:
    store = penstock.Redis(NOWHERE, "value string")
    with pytest.raises(BadCall, match="cast it first"):
        penstock.enrich(spark.range(1).selectExpr("id / 2 as key"), store, on="key")
    with pytest.raises(BadCall, match="nothing is enriched under the name 'nobody'"):
        penstock.enrich_counts("nobody")


def test_values_of_rows_that_wait_in_the_log_are_there_before_their_batch(
    spark: SparkSession,
    client: Client,
    url: str,
    fresh: Callable[[str], str],
    checkpoint: str,
) -> None:
    source, target = fresh("ahead_in"), fresh("ahead_out")
    client.create(source, "n bigint, at timestamp")
    rows = spark.readStream.format("penstock").load(source)
    store = penstock.Redis(url, "value string", prefix="n:")
    enriched = penstock.enrich(
        rows, store, on="n", missing="error", time="at", ahead=True, name=source
    )
    query = (
        enriched.writeStream.format("penstock")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="1 second")
        .start(target)
    )
    sent = 0

    def came_ahead() -> bool:
        """Whether a batch has found all its values: every worker reads ahead from its first on."""
        nonlocal sent
        client.append(source, [{"n": n, "at": AT} for n in range(sent, sent + 50)])
        sent += 50
        query.processAllAvailable()
        counts = penstock.enrich_counts(source)
        return counts.prefetched_used >= 50 and 0 in counts.on_path.values()

    wait_until("a batch waits for nothing", came_ahead)
    query.stop()
    counts = penstock.enrich_counts(source)
    assert counts.ahead_error == ""
    assert min(counts.on_path) >= 0
    assert {batch: keys for batch, keys in counts.on_path.items() if keys == 0}
    answer = client.read(target).to_pydict()
    assert sorted(answer["n"]) == list(range(sent))
    assert answer["value"] == [f"value {n}" for n in answer["n"]]


def test_a_stream_without_the_key_cannot_be_read_ahead_as_it_is(
    spark: SparkSession, client: Client, fresh: Callable[[str], str]
) -> None:
    source = fresh("ahead_key")
    client.create(source, "n bigint")
    rows = spark.readStream.format("penstock").load(source).selectExpr("n % 7 as key")
    store = penstock.Redis(NOWHERE, "value string")
    with pytest.raises(BadCall, match=r"has no column key, .*give Ahead\(rows=…\)"):
        penstock.enrich(rows, store, on="key", ahead=True)
