"""The source: schema, partitions, positions, where it starts, how much it takes."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.client import Client
from support.servers.holding_proxy import HeldQuestion, HoldingProxy
from support.servers.processes import ServerProcess, wait_until

# Far longer than a batch takes on a busy machine, and shorter than the plug-in waits for an answer.
HOLD_S = 50.0

Fresh = Callable[[str], str]

ALL_TYPES = (
    "flag boolean, tiny tinyint, small smallint, plain int, big bigint, f float, d double, "
    "money decimal(12,2), name string, raw binary, day date, at timestamp, local timestamp_ntz, "
    "tags array<string>, spot struct<x:int,y:string>, counts map<string,int>"
)


def numbers(first: int, count: int) -> pa.Table:
    return pa.table({"n": pa.array(range(first, first + count), pa.int64())})


def until_later_ms(client: Client, stream: str, position: int) -> None:
    """Returns once the clock shows a later millisecond than the commit at `position`."""
    while client.position(stream, time_ms=int(time.time() * 1000)) < position:
        time.sleep(0.001)


def run_to_end(frame: DataFrame, checkpoint: str, table: str) -> list[dict[str, Any]]:
    """Reads all there is with AvailableNow into a memory table; returns the progress."""
    query = (
        frame.writeStream.format("memory")
        .queryName(table)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(300)
    return [dict(progress) for progress in query.recentProgress]


def read_stream(spark: SparkSession, stream: str, **options: object) -> DataFrame:
    reader = spark.readStream.format("penstock")
    for key, value in options.items():
        reader = reader.option(key, str(value))
    return reader.load(stream)


def test_every_type_comes_back_as_it_was_sent(
    spark: SparkSession, client: Client, fresh: Fresh
) -> None:
    stream = fresh("types")
    client.create(stream, ALL_TYPES, substreams=1)
    at = dt.datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=dt.UTC)
    row: dict[str, object] = {
        "flag": True,
        "tiny": -1,
        "small": 2,
        "plain": -3,
        "big": 2**60,
        "f": 1.5,
        "d": -2.25,
        "money": decimal.Decimal("1234.50"),
        "name": "später",
        "raw": b"\x00\xff",
        "day": dt.date(2026, 1, 31),
        "at": at,
        "local": dt.datetime(2026, 1, 31, 12, 0, 0, 5),  # noqa: DTZ001 - it has none
        "tags": ["a", None, "c"],
        "spot": {"x": 1, "y": "z"},
        "counts": [("k", 7)],
    }
    empty = dict.fromkeys(row)
    table = pa.Table.from_pylist([row, empty], schema=client.schema(stream))
    client.append(stream, table)
    frame = spark.read.format("penstock").load(stream)
    assert frame.schema == spark.createDataFrame([], ALL_TYPES).schema
    first, second = frame.selectExpr(
        "*", "unix_micros(at) as micros", "cast(local as string) as written"
    ).collect()
    assert first["micros"] == int(at.timestamp()) * 10**6 + 123456
    assert first["written"] == "2026-01-31 12:00:00.000005"
    for name in ("flag", "tiny", "small", "plain", "big", "f", "d", "money", "name", "day", "tags"):
        assert first[name] == row[name], name
    assert bytes(first["raw"]) == b"\x00\xff"
    assert first["spot"].asDict() == {"x": 1, "y": "z"}
    assert first["counts"] == {"k": 7}
    assert all(value is None for value in second)


def test_a_substream_is_a_partition_and_is_read_in_columns(
    spark: SparkSession, client: Client, fresh: Fresh
) -> None:
    stream = fresh("parts")
    client.create(stream, "n bigint", substreams=3, key="n")
    client.append(stream, numbers(0, 100))
    frame = spark.read.format("penstock").load(stream)
    assert frame.rdd.getNumPartitions() == 3
    assert "ColumnarToRow" in frame._jdf.queryExecution().executedPlan().toString()
    by_partition = frame.groupBy(f.spark_partition_id()).count().collect()
    assert sum(row["count"] for row in by_partition) == 100
    assert all(row["count"] > 0 for row in by_partition)
    kept = {k: client.read(stream, substream=k)["n"].to_pylist() for k in range(3)}
    placed = frame.select("n", f.spark_partition_id().alias("k")).collect()
    assert {k: [r["n"] for r in placed if r["k"] == k] for k in range(3)} == kept


def test_batches_are_cut_at_commits_by_rows(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    stream = fresh("cut")
    client.create(stream, "n bigint")
    for i in range(10):
        client.append(stream, numbers(i * 10, 10))
    progress = run_to_end(read_stream(spark, stream, maxRowsPerTrigger=30), checkpoint, stream)
    # 10 commits of 10 rows, at most 30 rows each: 30 30 30 10
    assert [p["numInputRows"] for p in progress if p["numInputRows"]] == [30, 30, 30, 10]
    assert spark.table(stream).count() == 100


def test_batches_are_cut_by_bytes_and_hold_at_least_one_commit(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    stream = fresh("cut_bytes")
    client.create(stream, "n bigint")
    for i in range(4):
        client.append(stream, numbers(i * 1000, 1000))
    progress = run_to_end(read_stream(spark, stream, maxBytesPerTrigger=1), checkpoint, stream)
    assert [p["numInputRows"] for p in progress if p["numInputRows"]] == [1000] * 4


@pytest.mark.parametrize("start", ["earliest", "latest", "position", "time"])
def test_a_new_query_starts_where_it_is_told(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str, start: str
) -> None:
    stream = fresh("start")
    client.create(stream, "n bigint")
    middle = client.append(stream, numbers(0, 5)).position
    until_later_ms(client, stream, middle)
    between_ms = int(time.time() * 1000)
    client.append(stream, numbers(5, 5))
    options: dict[str, dict[str, object]] = {
        "earliest": {"startingPosition": "earliest"},
        "latest": {"startingPosition": "latest"},
        "position": {"startingPosition": middle},
        "time": {"startingTime": between_ms},
    }
    run_to_end(read_stream(spark, stream, **options[start]), checkpoint, stream)
    expected = {"earliest": 10, "latest": 0, "position": 5, "time": 5}[start]
    assert spark.table(stream).count() == expected


def test_the_start_is_kept_in_the_checkpoint(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    stream = fresh("kept_start")
    client.create(stream, "n bigint")
    client.append(stream, numbers(0, 5))
    made = fresh("made")

    def run() -> None:
        frame = read_stream(spark, stream, startingPosition="latest")
        writer = frame.writeStream.format("penstock").trigger(availableNow=True)
        query = writer.option("checkpointLocation", checkpoint).start(made)
        assert query.awaitTermination(300)

    run()
    kept = json.loads((Path(checkpoint) / "sources" / "0" / "0").read_text())
    assert kept == {"stream": stream, "position": client.position(stream)}
    client.append(stream, numbers(5, 7))
    # A start worked out anew would be after the 7 rows.
    run()
    assert client.read(made)["n"].to_pylist() == list(range(5, 12))


def test_available_now_stops_at_what_was_there_when_it_began(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    stream = fresh("now")
    client.create(stream, "n bigint")
    client.append(stream, numbers(0, 100))

    def append_more(batch: DataFrame, number: int) -> None:
        client.append(stream, numbers(1000 * (number + 1), 1))
        seen.append(batch.count())

    seen: list[int] = []
    query = (
        read_stream(spark, stream)
        .writeStream.foreachBatch(append_more)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)
    assert seen == [100]


def test_a_row_ends_the_wait_of_a_query_and_so_does_a_stop(
    spark: SparkSession, server: ServerProcess, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    """Questions are held for `HOLD_S`; each ends long before that.

    question 1   asked ----- row 0: answered with its position
    question 2   asked ----- row 1: answered with its position
    question 3   asked ----- stop: the query ends, and nobody waits for the answer
    """
    stream = fresh("held")
    client.create(stream, "n bigint")
    with HoldingProxy(server.url, HOLD_S) as proxy:

        def wait_until_held(after: int) -> HeldQuestion:
            asked = HeldQuestion(after)
            wait_until("a question is held", lambda: proxy.held[-1:] == [asked])
            return proxy.held[-1]

        def wait_for_rows(count: int) -> None:
            wait_until("the row is there", lambda: spark.table(stream).count() == count)

        query = (
            read_stream(spark, stream, url=proxy.url)
            .writeStream.format("memory")
            .queryName(stream)
            .option("checkpointLocation", checkpoint)
            .start()
        )
        try:
            position = 0
            for value in range(2):
                question = wait_until_held(position)
                began = time.monotonic()
                position = client.append(stream, numbers(value, 1)).position
                wait_for_rows(value + 1)
                assert time.monotonic() - began < HOLD_S / 2
                assert question.end == position, "another question than the held one got the row"
            wait_until_held(position)
        finally:
            began = time.monotonic()
            query.stop()
            stopped_s = time.monotonic() - began
        assert stopped_s < HOLD_S / 2
        assert proxy.held[-1] == HeldQuestion(position), "the question was answered before the stop"
    assert not query.isActive
    assert query.exception() is None


def test_a_join_of_two_streams_reads_both(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    left, right = fresh("left"), fresh("right")
    client.create(left, "n bigint")
    client.create(right, "n bigint")
    joined = read_stream(spark, left).join(read_stream(spark, right), "n")
    query = (
        joined.writeStream.format("memory")
        .queryName(left)
        .option("checkpointLocation", checkpoint)
        .start()
    )
    try:
        client.append(left, numbers(0, 10))
        query.processAllAvailable()
        client.append(right, numbers(5, 10))
        query.processAllAvailable()
        assert sorted(r["n"] for r in spark.table(left).collect()) == [5, 6, 7, 8, 9]
    finally:
        query.stop()


def test_an_unknown_stream_is_named(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="nowhere_to_be_found"):
        spark.readStream.format("penstock").load("nowhere_to_be_found")


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("startingPosition", "yesterday", "earliest, latest or a position"),
        ("startingTime", "noon", "milliseconds since 1970"),
        ("maxRowsPerTrigger", "0", "whole number above 0"),
        ("failOnDataLoss", "perhaps", "it takes true or false"),
        ("retrySeconds", "soon", "retrySeconds is 'soon'; it takes a whole number not below 0"),
        ("startingOffsets", "earliest", "not an option"),
        ("deadline", "soon", "deadline is 'soon'; it takes a time above 0"),
    ],
)
def test_a_bad_option_is_said_in_a_sentence(
    spark: SparkSession, client: Client, fresh: Fresh, option: str, value: str, says: str
) -> None:
    stream = fresh("options")
    client.create(stream, "n bigint")
    with pytest.raises(Exception, match=says):
        spark.read.format("penstock").option(option, value).load(stream).count()


def test_another_schema_than_the_streams_is_refused(
    spark: SparkSession, client: Client, fresh: Fresh
) -> None:
    stream = fresh("schema")
    client.create(stream, "n bigint")
    with pytest.raises(Exception, match="leave out"):
        spark.read.format("penstock").schema("n string").load(stream).count()


def test_a_position_past_the_end_fails_unless_told_otherwise(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    stream = fresh("lost")
    client.create(stream, "n bigint")
    past = client.append(stream, numbers(0, 3)).position + 1_000_000
    query = (
        read_stream(spark, stream, startingPosition=past)
        .writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .start()
    )
    with pytest.raises(StreamingQueryException, match="failOnDataLoss"):
        query.awaitTermination(300)
    lenient = read_stream(spark, stream, startingPosition=past, failOnDataLoss="false")
    query = (
        lenient.writeStream.format("memory")
        .queryName(stream)
        .option("checkpointLocation", checkpoint + "-lenient")
        .start()
    )
    try:
        query.processAllAvailable()
        client.append(stream, numbers(3, 2))
        query.processAllAvailable()
        assert [r["n"] for r in spark.table(stream).collect()] == [3, 4]
    finally:
        query.stop()
