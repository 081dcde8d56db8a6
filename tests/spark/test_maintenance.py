"""Streams that are trimmed, altered and grown while Spark queries read and write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from penstock.errors import BadCall
from support.servers.processes import ServerProcess

Fresh = Callable[[str], str]


@pytest.fixture
def asks_anew(server: ServerProcess) -> Iterator[Client]:
    """A client that has not learned any columns yet."""
    with server.client() as client:
        yield client


def numbers(first: int, count: int) -> pa.Table:
    return pa.table({"n": pa.array(range(first, first + count), pa.int64())})


def started(frame: DataFrame, checkpoint: str, output: str) -> StreamingQuery:
    written = frame.writeStream.format("penstock").option("checkpointLocation", checkpoint)
    return written.start(output)


def finished(frame: DataFrame, checkpoint: str, output: str) -> StreamingQuery:
    written = frame.writeStream.format("penstock").option("checkpointLocation", checkpoint)
    query = written.trigger(availableNow=True).start(output)
    query.awaitTermination(300)
    return query


def copied(client: Client, stream: str) -> list[int]:
    return sorted(client.read(stream)["n"].to_pylist())


def test_a_stopped_query_keeps_its_input_and_one_that_lost_it_says_so(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    stream, output = fresh("held"), fresh("copied")
    client.create(stream, "n bigint")
    client.append(stream, numbers(0, 10))
    frame = spark.readStream.format("penstock").load(stream)
    query = finished(frame, checkpoint, output)
    client.append(stream, numbers(10, 10))
    end = client.append(stream, numbers(20, 10)).position
    with pytest.raises(BadCall) as refused:
        client.trim(stream, end)
    assert refused.value.code == "still_needed"
    assert str(query.id) in refused.value.message
    finished(frame, checkpoint, output)
    assert copied(client, output) == list(range(30))
    client.trim(stream, end)

    client.append(stream, numbers(30, 10))
    client.delete_query(str(query.id))
    client.trim(stream, client.position(stream))
    client.append(stream, numbers(40, 10))
    lost = started(frame, checkpoint, output)
    with pytest.raises(StreamingQueryException) as caught:
        lost.awaitTermination(300)
    for fact in ("is trimmed up to", "are gone", "failOnDataLoss", "[penstock: trimmed]"):
        assert fact in str(caught.value)
    assert copied(client, output) == list(range(30)), "never fewer rows than there were"
    lenient = spark.readStream.format("penstock").option("failOnDataLoss", "false").load(stream)
    finished(lenient, checkpoint, output)
    assert copied(client, output) == [*range(30), *range(40, 50)]


def test_columns_and_substreams_are_added_while_a_query_reads_and_writes(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str, asks_anew: Client
) -> None:
    stream, output = fresh("grown"), fresh("written")
    client.create(stream, "n bigint", substreams=1, key="n")
    frame = spark.readStream.format("penstock").load(stream)
    query = started(frame, checkpoint, output)
    try:
        client.append(stream, numbers(0, 10))
        query.processAllAvailable()
        asks_anew.alter(stream, add="note string")
        asks_anew.alter(output, add="extra string")
        client.append(stream, numbers(10, 10))
        asks_anew.append(stream, [{"n": 20, "note": "new"}])
        query.processAllAvailable()
        asks_anew.alter(stream, substreams=4)
        client.append(stream, numbers(21, 30))
        query.processAllAvailable()
        assert sorted(client.read(output)["n"].to_pylist()) == list(range(51))
        assert asks_anew.read(output).column_names == ["n", "extra"]
    finally:
        query.stop()
    # Started again, it sees the column, and its rows still fit what it writes to.
    asks_anew.append(stream, [{"n": 51, "note": "seen"}])
    again = spark.readStream.format("penstock").load(stream)
    assert again.columns == ["n", "note"]
    finished(again.where("note = 'seen' or note is null").select("n"), checkpoint, output)
    assert sorted(client.read(output)["n"].to_pylist()) == list(range(52))
    # A plan from before the column was added goes on without it.
    rows = spark.read.format("penstock").load(stream)
    asks_anew.alter(stream, add="later int")
    assert rows.columns == ["n", "note"]
    assert rows.count() == 52


def test_the_log_learns_what_the_checkpoint_location_has(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    stream, output = fresh("known"), fresh("marked")
    client.create(stream, "n bigint")
    frame = spark.readStream.format("penstock").load(stream)
    query = started(frame, checkpoint, output)
    try:
        # The copy follows in its own time, and the marker after it says so.
        for batch in range(100):
            client.append(stream, numbers(batch, 1))
            query.processAllAvailable()
            known = client.query(str(query.id))
            if known.copied is not None:
                break
    finally:
        query.stop()
    assert known.copied is not None
    assert known.marker is not None
    assert known.copied < known.marker.batch
    (held,) = [each for each in client.consumers() if each.name == str(query.id)]
    assert (held.reader, held.stream, held.rows_behind) == ("query", stream, 0)
