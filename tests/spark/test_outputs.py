"""One query, several streams in and out, one marker for all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import penstock
from penstock.client import Client
from penstock.errors import BadCall

Fresh = Callable[[str], str]


def numbers(first: int, count: int) -> pa.Table:
    return pa.table({"n": pa.array(range(first, first + count), pa.int64())})


def two_inputs(spark: SparkSession, client: Client, fresh: Fresh) -> tuple[str, str]:
    left, right = fresh("left"), fresh("right")
    for stream in (left, right):
        client.create(stream, "n bigint", substreams=2, key="n")
    client.append(left, numbers(0, 100))
    client.append(right, numbers(50, 100))
    return left, right


def streamed(spark: SparkSession, stream: str) -> DataFrame:
    reader = spark.readStream.format("penstock").option("maxRowsPerTrigger", 100)
    return reader.load(stream)


def test_a_join_writes_two_streams_and_one_marker_shows_both(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path
) -> None:
    left, right = two_inputs(spark, client, fresh)
    both, odd = fresh("both"), fresh("odd")
    joined = streamed(spark, left).join(streamed(spark, right), "n")
    outputs = penstock.Outputs(
        {both: joined, odd: streamed(spark, left).where("n % 2 = 1").selectExpr("n", "'odd' kind")}
    )

    def run() -> str:
        writer = outputs.writeStream.option(f"{both}.key", "n").option(f"{both}.substreams", 3)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(300)
        return str(query.id)

    query = run()
    client.append(left, numbers(100, 20))
    assert run() == query

    assert sorted(client.read(both)["n"].to_pylist()) == list(range(50, 120))
    odds = client.read(odd).to_pylist()
    assert sorted(row["n"] for row in odds) == list(range(1, 120, 2))
    assert {row["kind"] for row in odds} == {"odd"}
    stream = client.describe(both)
    assert (stream.substreams, stream.key) == (3, ("n",))

    first, *rest = client.markers(query)
    assert first.positions.keys() == {left, right}
    # The first commit of both streams is one and the same entry of the log.
    assert client.read(both, 0, first.lsn).num_rows == 50
    assert client.read(odd, 0, first.lsn).num_rows == 50
    assert rest[-1].lsn == client.position(both) == client.position(odd)


def test_rows_of_one_frame_go_to_the_streams_whose_structs_they_have(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path
) -> None:
    given, even, every = fresh("given"), fresh("even"), fresh("every")
    client.create(given, "n bigint")
    client.append(given, numbers(0, 10))
    frame = streamed(spark, given).select(
        f.when(f.expr("n % 2 = 0"), f.struct("n")).alias(even),
        f.struct("n", (f.col("n") * 2).alias("double")).alias(every),
    )
    writer = frame.writeStream.format("penstock").option("outputs", f"{even},{every}")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination(300)
    assert client.read(even)["n"].to_pylist() == [0, 2, 4, 6, 8]
    assert client.read(every)["double"].to_pylist() == list(range(0, 20, 2))


def test_columns_that_are_not_the_outputs_are_refused(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path
) -> None:
    given = fresh("given")
    client.create(given, "n bigint")
    client.append(given, numbers(0, 1))
    writer = streamed(spark, given).writeStream.format("penstock").option("outputs", "a,b")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException, match="one struct column for each"):
        writer.trigger(availableNow=True).start().awaitTermination(300)


def test_no_outputs_at_all_are_refused() -> None:
    with pytest.raises(BadCall, match="at least one stream"):
        penstock.Outputs()
