"""The sink: output modes, streams it makes, routing, attempts that lose, the marker's order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client

Fresh = Callable[[str], str]


def pairs(first: int, count: int) -> pa.Table:
    n = range(first, first + count)
    return pa.table({"n": pa.array(n, pa.int64()), "key": pa.array([i % 5 for i in n], pa.int64())})


def run(
    frame: DataFrame, stream: str, checkpoint: str, mode: str = "append", **options: object
) -> StreamingQuery:
    writer = frame.writeStream.format("penstock").outputMode(mode).queryName(stream)
    for key, value in options.items():
        writer = writer.option(key, str(value))
    writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    query = writer.start(stream)
    query.awaitTermination(300)
    return query


def source(spark: SparkSession, client: Client, stream: str, rows: int = 100) -> DataFrame:
    client.create(stream, "n bigint, key bigint", substreams=2, key="key")
    client.append(stream, pairs(0, rows))
    return spark.readStream.format("penstock").load(stream)


def test_append_mode_makes_the_stream_and_shows_every_row_once(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    given, made = fresh("given"), fresh("made")
    frame = source(spark, client, given).select("n", (f.col("n") * 2).alias("double"))
    query = run(frame, made, checkpoint, substreams=3, key="n")
    stream = client.describe(made)
    assert (stream.substreams, stream.key, stream.rows) == (3, ("n",), 100)
    assert sorted(client.read(made)["n"].to_pylist()) == list(range(100))
    (marker,) = client.markers(str(query.id))
    assert marker.batch == 0
    assert marker.positions == {given: client.position(given)}
    assert marker.lsn == client.position(made)


def test_the_marker_names_the_least_position_of_two_sources_over_one_stream(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    """The second source reads all of the stream in the first batch, and nothing in the others.

    batch               0    1    2
    the first ends at   1    2    3
    the second          3    3    3
    """
    given, made = fresh("given"), fresh("made")
    client.create(given, "n bigint")
    ends = [client.append(given, pa.table({"n": [n]})).position for n in range(3)]

    def union() -> DataFrame:
        slow = spark.readStream.format("penstock").option("maxRowsPerTrigger", 1).load(given)
        return slow.union(spark.readStream.format("penstock").load(given))

    query = run(union(), made, checkpoint)
    assert [marker.positions for marker in client.markers(str(query.id))] == [
        {given: p} for p in ends
    ]
    more = [client.append(given, pa.table({"n": [n]})).position for n in range(3, 6)]
    run(union(), made, checkpoint)
    assert [marker.positions for marker in client.markers(str(query.id), after_batch=2)] == [
        {given: p} for p in more
    ]
    assert Counter(client.read(made)["n"].to_pylist()) == Counter([*range(6), *range(6)])


def test_the_marker_carries_the_bytes_of_the_commit_file(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    import base64

    given, made = fresh("given"), fresh("made")
    query = run(source(spark, client, given), made, checkpoint)
    last = client.query(str(query.id)).marker
    assert last is not None
    assert last.commit is not None
    assert base64.b64decode(last.commit) == (Path(checkpoint) / "commits" / "0").read_bytes()


def test_update_mode_emits_what_changed(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    given, made = fresh("given"), fresh("made")
    counts = source(spark, client, given).groupBy("key").count()
    run(counts, made, checkpoint, mode="update", key="key")
    client.append(given, pairs(0, 1))
    run(counts, made, checkpoint, mode="update", key="key")
    rows = [(r["key"], r["count"]) for r in client.read(made).to_pylist()]
    assert sorted(rows[:5]) == [(k, 20) for k in range(5)]
    assert rows[5:] == [(0, 21)]


def test_complete_mode_emits_everything_and_says_so(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    given, made = fresh("given"), fresh("made")
    counts = source(spark, client, given).groupBy("key").count()
    run(counts, made, checkpoint, mode="complete")
    first = client.position(made)
    client.append(given, pairs(0, 1))
    query = run(counts, made, checkpoint, mode="complete")
    latest = {r["key"]: r["count"] for r in client.read(made, first).to_pylist()}
    assert latest == {0: 21, 1: 20, 2: 20, 3: 20, 4: 20}
    assert [marker.mode for marker in client.markers(str(query.id))] == ["complete", "complete"]


def test_batch_write_and_read(spark: SparkSession, client: Client, fresh: Fresh) -> None:
    made = fresh("batch")
    spark.range(50).write.format("penstock").mode("append").option("substreams", 2).save(made)
    spark.range(50, 60).write.format("penstock").mode("append").save(made)
    frame = spark.read.format("penstock").load(made)
    assert sorted(r["id"] for r in frame.collect()) == list(range(60))
    with pytest.raises(Exception, match="does not support truncate"):
        spark.range(1).write.format("penstock").mode("overwrite").save(made)


def test_a_schema_that_does_not_fit_stops_the_query_with_the_columns(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    given, made = fresh("given"), fresh("made")
    client.create(made, "n string")
    with pytest.raises(StreamingQueryException, match="n") as caught:
        run(source(spark, client, given).select("n"), made, checkpoint)
    assert "stream_differs" in str(caught.value)
    assert client.describe(made).rows == 0


def test_a_key_that_is_no_column_is_named(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    with pytest.raises(StreamingQueryException, match="colour"):
        run(source(spark, client, fresh("given")), fresh("made"), checkpoint, key="colour")


def test_rows_without_a_key_are_spread(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    given, made = fresh("given"), fresh("made")
    run(source(spark, client, given), made, checkpoint, substreams=2)
    assert all(client.read(made, substream=k).num_rows > 0 for k in range(2))
    assert client.read(made).num_rows == 100


VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "routing.json").read_text())


def test_scala_routes_a_key_as_python_does(
    spark: SparkSession, client: Client, fresh: Fresh
) -> None:
    groups: dict[tuple[tuple[str, ...], int], list[dict[str, object]]] = {}
    for case in VECTORS:
        groups.setdefault((tuple(case["types"]), case["substreams"]), []).append(case)
    for (types, substreams), cases in groups.items():
        made = fresh("routed")
        names = [f"c{i}" for i in range(len(types))]
        literals = [
            [_literal(kind, value) for kind, value in zip(types, case["values"], strict=True)]  # type: ignore[call-overload]
            for case in cases
        ]
        selects = " union all ".join(
            "select "
            + ", ".join(f"{text} as {name}" for text, name in zip(row, names, strict=True))
            + f", {i} as number"
            for i, row in enumerate(literals)
        )
        (
            spark.sql(selects)
            .write.format("penstock")
            .mode("append")
            .option("substreams", substreams)
            .option("key", ",".join(names))
            .save(made)
        )
        placed = {
            number: k
            for k in range(substreams)
            for number in client.read(made, substream=k)["number"].to_pylist()
        }
        assert placed == {i: case["substream"] for i, case in enumerate(cases)}, types


def _literal(kind: str, value: object) -> str:
    if value is None:
        return f"cast(null as {kind})"
    if kind in ("timestamp", "timestamp_ntz"):
        micros = f"timestamp_micros({value})"
        return micros if kind == "timestamp" else f"cast({micros} as timestamp_ntz)"
    if kind == "date":
        return f"date_from_unix_date({value})"
    if kind == "binary":
        return f"unbase64('{value}')"
    if kind in ("string", "varchar"):
        return f"decode(unbase64('{_base64(str(value))}'), 'UTF-8')"
    if kind in ("float", "double") or kind.startswith("decimal"):
        return f"cast('{value}' as {kind})"
    return f"cast({str(value).lower()} as {kind})"


def _base64(text: str) -> str:
    import base64

    return base64.b64encode(text.encode()).decode()


def test_what_a_failed_attempt_appended_is_never_seen(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    given, made = fresh("given"), fresh("made")
    # Wide rows, so that an attempt has sent entries before it fails.
    wide = "n bigint, key bigint, text string"

    def fail_twice(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            n = batch["n"].to_pylist()
            for i in range(0, len(n), 64):
                part = n[i : i + 64]
                text = ["x" * 20_000] * len(part)
                yield pa.record_batch({"n": part, "key": part, "text": text})
        if TaskContext.get().attemptNumber() < 2:  # type: ignore[union-attr]
            raise RuntimeError("planted failure")

    before = client.server().latest
    frame = source(spark, client, given, rows=2000).mapInArrow(fail_twice, wide)
    run(frame.selectExpr("n", "key", "text"), made, checkpoint, substreams=2)
    shown = client.read(made)["n"].to_pylist()
    assert Counter(shown) == Counter(range(2000))
    visible = client.describe(made).rows
    assert visible == 2000
    # 2,000 rows of 20 kB are ten requests; three attempts left about three times as many.
    appended = client.server().latest - before
    assert appended > 20


def test_a_wrong_file_manager_is_named(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    key = "spark.sql.streaming.checkpointFileManagerClass"
    other = (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileContextBasedCheckpointFileManager"
    )
    ours = spark.conf.get(key)
    assert ours is not None
    frame = source(spark, client, fresh("given"))
    spark.conf.set(key, other)
    try:
        with pytest.raises(StreamingQueryException, match="checkpointFileManagerClass"):
            run(frame, fresh("made"), checkpoint)
    finally:
        spark.conf.set(key, ours)


def test_chained_queries_pass_only_what_is_committed(
    spark: SparkSession, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    given, middle, end = fresh("given"), fresh("middle"), fresh("end")
    counts = source(spark, client, given).groupBy("key").agg(f.max("n").alias("top"))
    run(counts, middle, checkpoint + "-1", mode="update", key="key")
    best = (
        spark.readStream.format("penstock").load(middle).groupBy().agg(f.max("top").alias("best"))
    )
    run(best, end, checkpoint + "-2", mode="update")
    assert client.read(end)["best"].to_pylist() == [99]
