"""Joins with static tables and parsed texts below an aggregate, in workers, against Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.client import Client
from penstock.devices.operators.json_lines import parse_json_lines
from penstock.devices.operators.parse import parse_csv
from penstock.devices.operators.rows import Rows
from penstock.errors import BadCall
from penstock.model.ddl import parse_ddl
from support.columns import listed
from support.spark.plain_windows import NO_DATA
from support.spark.window_rows import SECOND, START_US, append, some_commits
from support.spark.window_runs import DEVICES, Compared, plain

LEVELS = (
    "values ('a', 1, 10.5D), ('a', 2, null), ('b', 1, 2.0D), (null, 1, 7.0D), ('z', 9, 1.0D)"
    " as t(key, level, factor)"
)
FIELDS = "k string, i bigint, n int, x double, b boolean"
LINE_COLUMNS = "at timestamp, line string"


@pytest.fixture(scope="module")
def stream(client: Client) -> str:
    append(client, "columnar_joined", some_commits())
    return "columnar_joined"


@pytest.fixture
def compared(spark: SparkSession, stream: str, tmp_path: Path) -> Compared:
    return Compared(spark, stream, tmp_path, DEVICES, "cpu")


def levels(rows: DataFrame, query: str = f"select * from {LEVELS}") -> DataFrame:
    return rows.sparkSession.sql(query)


def windowed() -> Any:
    return f.window("at", "60 seconds", "5 seconds")


def summed(rows: DataFrame) -> DataFrame:
    marked = rows.withWatermark("at", "20 seconds")
    return marked.groupBy(windowed(), "k", "level").agg(
        f.sum(f.col("i") * f.col("level")).alias("weighted"),
        f.avg("factor").alias("factor"),
        f.count("*").alias("rows"),
    )


def inner(rows: DataFrame) -> DataFrame:
    """A text that several rows of the table have, and nulls on both sides."""
    return summed(rows.join(levels(rows), f.col("k") == f.col("key")))


def left(rows: DataFrame) -> DataFrame:
    return summed(rows.join(levels(rows), f.col("k") == f.col("key"), "left"))


def by_number(rows: DataFrame) -> DataFrame:
    """The table on the left, numbers as keys, and a condition besides them."""
    table = levels(rows)
    return summed(table.join(rows, (f.col("n") == f.col("level")) & (f.col("x") > f.col("factor"))))


def by_two_keys(rows: DataFrame) -> DataFrame:
    both = (f.col("k") == f.col("key")) & (f.col("g") == f.col("factor"))
    return summed(rows.join(levels(rows), both, "left"))


def twice(rows: DataFrame) -> DataFrame:
    other = levels(rows, f"select key as key2, level as other from {LEVELS} where level > 0")
    once = rows.join(levels(rows), f.col("k") == f.col("key"))
    return summed(once.join(other, f.col("k") == f.col("key2")).where("other <= level + n"))


def empty(rows: DataFrame) -> DataFrame:
    none = rows.sparkSession.range(0).selectExpr("cast(id as string) key", "1 level", "2D factor")
    return summed(rows.join(f.broadcast(none), f.col("k") == f.col("key"), "left"))


@pytest.mark.parametrize("build", [inner, left, by_number, by_two_keys, twice, empty])
def test_a_join_with_a_static_table_goes_to_workers_with_it(
    spark: SparkSession,
    stream: str,
    tmp_path: Path,
    device: str,
    build: Callable[[DataFrame], DataFrame],
) -> None:
    ours = Compared(spark, stream, tmp_path, DEVICES, device).check(build, settings=NO_DATA)
    assert any(ours.answer.values())
    (note,) = [note.text for note in ours.device_notes]
    assert note.startswith(f"{device}: ")
    assert note.count("join") == (2 if build is twice else 1)
    assert f"ColumnarPanes on {device}" in ours.plan


def semi(rows: DataFrame) -> DataFrame:
    kept = rows.join(levels(rows), f.col("k") == f.col("key"), "left_semi")
    return kept.groupBy(windowed(), "k").agg(f.sum("i").alias("i"))


def outer_if(rows: DataFrame) -> DataFrame:
    condition = (f.col("k") == f.col("key")) & (f.col("n") < f.col("level"))
    return summed(rows.join(levels(rows), condition, "left"))


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (semi, "left to panes: a left semi join stands below the aggregate"),
        (
            outer_if,
            "left to panes: a left outer join with a further condition stands below the aggregate",
        ),
    ],
)
def test_other_joins_are_left_to_spark_by_name(
    compared: Compared, build: Callable[[DataFrame], DataFrame], text: str
) -> None:
    ours = compared.check(build, settings=NO_DATA)
    assert [note.text for note in ours.device_notes] == [text]


def large(rows: DataFrame) -> DataFrame:
    """A table of more bytes than are sent with a task."""
    table = rows.sparkSession.range(200_000).selectExpr(
        "if(id = 5, 'a', concat('none', id)) key", "cast(id as int) level", "1D factor"
    )
    return summed(rows.join(f.broadcast(table), f.col("k") == f.col("key")))


def test_a_table_that_is_too_large_to_be_sent_is_joined_by_spark(compared: Compared) -> None:
    ours = compared.check(large, settings=NO_DATA)
    assert any(ours.answer.values())
    assert "larger than 4 MB" in [note.text for note in ours.device_notes][-1]


JSON_LINES = (
    '{"k": "a", "i": 1, "n": 7, "x": 2.5, "b": true}',
    '{"k": "b", "i": -5, "x": 1e3, "more": {"k": [1]}}',
    '{"k": null, "i": 1.5, "n": 3000000000, "x": "NaN", "b": "yes"}',
    *('{"k": "a", "i": "x"}', "nonsense", "[1]", "", '{"n": 2, "b": false, "k": 12}'),
)
CSV_LINES = (
    *("a,1,7,2.5,true", "b,-5,,1e3,FALSE", ",1.5,3000000000,NaN,yes", "a,x", "", "a,1,2,3,true,z"),
    *('"a",2,3,4,true', '"b,c",3,4,5,false', "a,922337203685477580, 1,Inf,"),
)


def lines_stream(client: Client, name: str, lines: tuple[str, ...]) -> None:
    client.create(name, LINE_COLUMNS, substreams=2)
    schema = parse_ddl(LINE_COLUMNS)
    for commit in range(2):
        rows = [
            {"at": START_US + (30 * commit + place) * SECOND, "line": line}
            for place, line in enumerate((*lines, None))
        ]
        client.append(name, pa.Table.from_pylist(rows, schema=schema))


def of_parsed(parsed: DataFrame) -> DataFrame:
    return (
        parsed.withWatermark("at", "20 seconds")
        .groupBy(windowed(), "v.k", "v.b")
        .agg(f.sum("v.i").alias("i"), f.max("v.n").alias("n"), f.min("v.x").alias("x"))
    )


def of_json(rows: DataFrame) -> DataFrame:
    return of_parsed(rows.select("at", f.from_json("line", FIELDS).alias("v")))


def of_csv(rows: DataFrame) -> DataFrame:
    return of_parsed(rows.select("at", f.from_csv("line", FIELDS).alias("v")))


def some_fields(rows: DataFrame) -> DataFrame:
    """Fields that are filtered by and summed, of texts that are parsed again and again."""
    fields = f.from_json("line", FIELDS)
    narrow = rows.where(fields["i"] > -9).select("at", fields["i"].alias("i"), fields["k"])
    return narrow.groupBy(windowed()).agg(f.sum("i").alias("i"), f.count("*").alias("rows"))


@pytest.mark.parametrize(
    ("build", "lines"),
    [(of_json, JSON_LINES), (some_fields, JSON_LINES), (of_csv, CSV_LINES)],
)
def test_texts_are_parsed_by_workers(
    spark: SparkSession,
    client: Client,
    fresh: Callable[[str], str],
    tmp_path: Path,
    build: Callable[[DataFrame], DataFrame],
    lines: tuple[str, ...],
) -> None:
    stream = fresh("columnar_lines")
    lines_stream(client, stream, lines)
    ours = Compared(spark, stream, tmp_path, DEVICES, "cpu").check(build, settings=NO_DATA)
    assert any(ours.answer.values())
    (note,) = [note.text for note in ours.device_notes]
    assert note.startswith("cpu: ")
    assert "parse" in note


JSON_PARTS = (
    *('"a"', '"k"', '"i"', '"x"', '"b"', '"n"', ":", ",", "{", "}", "[", "]", " ", "1", "-0"),
    *("2.50", "1e2", "true", "null", '"é"', '""', '"NaN"', "NaN", "'k'", "x", '"1"'),
    "12345678901234567890",
)
CSV_PARTS = (
    *("a", ",", ",", ",", '"', "\\", " ", "1", "-7", "2.5", "1e3", "true", "FALSE", "NaN", "Inf"),
    *("-Inf", "+1", "0x1p3", "1f", "9223372036854775807", "é", "\t", "-", ".", "Infinity", '"a"'),
)


def random_lines(parts: tuple[str, ...], frames: tuple[str, ...]) -> list[str]:
    """Lines of parts in any order, some of them within a well-formed frame."""
    # A congruential generator, so that the same lines are tried every time.
    state = 7

    def drawn(count: int) -> int:
        nonlocal state
        state = (state * 6_364_136_223_846_793_005 + 1) % 2**64
        return (state >> 33) % count

    lines = []
    for number in range(1_500):
        text = "".join(parts[drawn(len(parts))] for _ in range(drawn(9)))
        frame = frames[drawn(len(frames))] if number % 3 else "%s"
        lines.append(frame.replace("%s", text))
    return lines


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_line_is_read_as_spark_reads_it_or_not_at_all(spark: SparkSession, kind: str) -> None:
    if kind == "json":
        frames = ('{"k": "%s"}', '{"i": 1, "x": %s}', '{"k": %s, "n": 5}', '{"b": %s}')
        lines = random_lines(JSON_PARTS, frames)
    else:
        lines = random_lines(CSV_PARTS, ("%s", "a,%s", "a,1,2,%s", '"%s",1', "a,%s,5"))
    fields = [(field.split()[0], field.split()[1]) for field in FIELDS.split(", ")]
    ours = [read(kind, line, fields) for line in lines]
    frame = spark.createDataFrame(list(enumerate(lines)), "place int, line string")
    parse = f.from_json if kind == "json" else f.from_csv
    answered = frame.select("place", parse("line", FIELDS).alias("v")).select("place", "v.*")
    theirs = [plain(tuple(row)[1:]) for row in sorted(answered.collect(), key=lambda row: row[0])]
    differing = [
        (line, mine, spark_row)
        for line, mine, spark_row in zip(lines, ours, theirs, strict=True)
        if mine is not None and mine != spark_row
    ]
    assert differing == []
    assert sum(mine is not None for mine in ours) > len(lines) // 4


def read(kind: str, line: str, fields: list[tuple[str, str]]) -> Any:
    """The row of a line; None where it is refused."""
    column = pa.array([line], pa.string())
    try:
        rows: Rows = (
            parse_json_lines(column, fields) if kind == "json" else parse_csv(column, fields)
        )
    except BadCall:
        return None
    return plain(listed(rows)[0])
