"""Keys of state are hinted ahead of the rows, from every place of the plan; answers stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.client import Client
from support.spark.lookahead_runs import (
    ALL,
    KEY,
    PARTS,
    ROWS,
    Fresh,
    Runs,
    changed_conf,
    hinting_runs,
)

JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
SPARKS_OWN = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
KEPT = [row for row in ALL if row["key"] % 3 != 0]


def named(frame: DataFrame) -> DataFrame:
    """A filter and a projection between the source and the key."""
    return frame.where("key % 3 != 0").select("n", f.format_string("key-%d", "key").alias("name"))


def aggregate(frame: DataFrame) -> DataFrame:
    return named(frame).groupBy("name").count()


def deduplicate(frame: DataFrame) -> DataFrame:
    return named(frame).select("name").dropDuplicates(["name"]).withColumn("count", f.lit(1))


def join(frame: DataFrame) -> DataFrame:
    left = named(frame)
    right = frame.where("n % 2 = 0").select(f.format_string("key-%d", "key").alias("other"), "n")
    right = right.withColumnRenamed("n", "m")
    return left.join(right, f.expr("name = other")).select("name", f.lit(1).alias("count"))


def pandas_state(frame: DataFrame) -> DataFrame:
    # In here, so that Python workers get it whole and need not import this file.
    def count_group(
        key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        count = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
        state.update((count,))
        yield pd.DataFrame({"name": [key[0]], "count": [count]})

    out = StructType([StructField("name", StringType()), StructField("count", LongType())])
    kept = StructType([StructField("count", LongType())])
    return (
        named(frame)
        .groupBy("name")
        .applyInPandasWithState(count_group, out, kept, "update", GroupStateTimeout.NoTimeout)
    )


def expected(operator: str) -> Counter[tuple[str, int]]:
    names = Counter(f"key-{row['key']}" for row in KEPT)
    if operator == "deduplicate":
        return Counter({(name, 1): 1 for name in names})
    if operator == "join":
        even = Counter(f"key-{row['key']}" for row in ALL if row["n"] % 2 == 0)
        return Counter({(name, 1): count * even[name] for name, count in names.items()})
    return Counter(dict.fromkeys(names.items(), 1))


def join_table(frame: DataFrame) -> DataFrame:
    """A static table between the source and the key: below it nothing tells which rows it drops."""
    # Of a filter Spark would make one on the stream too, and hints would know.
    rest = [frame.sparkSession.range(first, PARTS * ROWS, 3) for first in (1, 2)]
    table = rest[0].union(rest[1]).withColumnRenamed("id", "kept")
    kept = frame.join(f.broadcast(table), f.expr("key = kept"))
    return kept.groupBy(f.format_string("key-%d", "key").alias("name")).count()


OPERATORS: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "aggregate": (aggregate, "update"),
    "deduplicate": (deduplicate, "append"),
    "join": (join, "append"),
    "pandas_state": (pandas_state, "update"),
}


@pytest.fixture
def runs(spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path) -> Iterator[Runs]:
    with hinting_runs(spark, client, fresh, tmp_path) as runs:
        yield runs


CASES = [
    *(("aggregate", place) for place in "ABCD"),
    *(("deduplicate", place) for place in "BCD"),
    *(("join", place) for place in "ABCD"),
    *(("pandas_state", place) for place in "BCD"),
]


@pytest.mark.parametrize(("name", "place"), CASES)
def test_hints_change_no_answer_and_are_all_read(runs: Runs, name: str, place: str) -> None:
    operator, mode = OPERATORS[name]
    runs.spark.conf.set(KEY, place)
    ran = runs.run(operator, mode)
    assert ran.answer == expected(name)
    (counts,) = ran.operators
    assert counts.candidates == ("A", "B", "C", "D")
    assert counts.active == (place,)
    # A filter is between the place and the operator: its keys are not hinted.
    assert counts.hinted.get(place, 0) > 0
    assert sum(counts.unused.values()) == 0
    if place in "ABC":
        assert counts.used.get(place, 0) > 0
    if name == "aggregate" and place in "CD":
        # One task gives each key of a batch once, and the operator reads it once. No store is open
        # yet when keys of the first batch are hinted from below the shuffle.
        first = {row["key"] for row in KEPT if row["n"] < ROWS}
        unheard = len(first) if place == "C" else 0
        assert counts.hinted[place] == counts.hits + counts.misses - unheard
    if place == "A":
        assert ran.pages_taken >= PARTS - 1


def test_keys_of_groups_of_pandas_are_hinted_from_a_log_in_which_rows_wait(runs: Runs) -> None:
    operator, mode = OPERATORS["pandas_state"]
    with changed_conf(runs.spark, {KEY: "A"}):
        ran = runs.run(operator, mode, is_backlog=True)
    assert ran.answer == expected("pandas_state")
    (counts,) = ran.operators
    assert counts.candidates == ("A", "B", "C", "D")
    assert counts.active == ("A",)
    assert counts.hinted["A"] > 0


NAMES = 15


def many_rows(kind: str) -> Callable[[DataFrame], DataFrame]:
    """A join of few keys with many rows each: it reads their number, then all of them."""

    def joined(frame: DataFrame) -> DataFrame:
        name, at = f.format_string("key-%d", f.col("key") % NAMES), f.timestamp_seconds("n")
        left = frame.where("key % 3 != 0").select(name.alias("name"), at.alias("at"))
        right = frame.where("n % 2 = 0").select(name.alias("other"), at.alias("other_at"))
        left, right = left.withWatermark("at", "1 hour"), right.withWatermark("other_at", "1 hour")
        near = "other_at between at - interval 1 hour and at + interval 1 hour"
        pairs = left.join(right, f.expr(f"name = other and {near}"), kind)
        return pairs.select("name", f.lit(1).alias("count"))

    return joined


def expected_rows(kind: str) -> Counter[tuple[str, int]]:
    left = Counter(f"key-{row['key'] % NAMES}" for row in KEPT)
    right = Counter(f"key-{row['key'] % NAMES}" for row in ALL if row["n"] % 2 == 0)
    # Every row has a match, and so has an outer join nothing more.
    pairs = {name: count * right[name] for name, count in left.items()}
    return Counter({(name, 1): n for name, n in (left if kind == "leftsemi" else pairs).items()})


JOINS = [("inner", "2", "A"), ("inner", "2", "B"), ("inner", "3", "B"), ("inner", "3", "D")]
JOINS += [("leftsemi", "2", "B"), ("leftouter", "2", "B")]


@pytest.mark.parametrize(("kind", "state_format", "place"), JOINS)
def test_a_join_has_its_rows_fetched_once_their_number_was(
    runs: Runs, kind: str, state_format: str, place: str
) -> None:
    with changed_conf(runs.spark, {KEY: place, JOIN_FORMAT: state_format}):
        ran = runs.run(many_rows(kind), "append")
    assert ran.answer == expected_rows(kind)
    (counts,) = ran.operators
    assert counts.active == (place,)
    assert counts.hinted[place] > 0
    # Each side has a number of rows for each key; whatever else was fetched is rows. A left row of
    # a semi join is done with the first of them.
    fetches_rows = kind != "leftsemi"
    assert (counts.used.get(place, 0) > 2 * NAMES) == fetches_rows
    assert sum(counts.unused.values()) == 0


def test_spark_begins_no_join_in_state_format_1(runs: Runs) -> None:
    stock = {PROVIDER: SPARKS_OWN, JOIN_FORMAT: "1"}
    refused = pytest.raises(StreamingQueryException, match="Unsupported schema writer version: 1")
    with changed_conf(runs.spark, stock), refused:
        runs.run(many_rows("inner"), "append", parts=1)


@pytest.mark.parametrize("place", ["A", "B"])
def test_what_a_join_with_a_table_drops_is_unused_where_it_is_hinted_from_below_it(
    runs: Runs, place: str
) -> None:
    runs.spark.conf.set(KEY, place)
    ran = runs.run(join_table, "update")
    assert ran.answer == expected("aggregate")
    (counts,) = ran.operators
    assert counts.candidates == ("A", "B", "C", "D")
    assert counts.used[place] > 0
    # B is above the join, right below the partial aggregate.
    assert (counts.unused[place] > 0) == (place == "A")


def test_a_lookahead_below_an_aggregate_is_part_of_generated_code(runs: Runs) -> None:
    runs.spark.conf.set(KEY, "B")
    ran = runs.run(aggregate, "update", substreams=2)
    assert "*(1) LookaheadB" in ran.plan
    assert ran.notes == ("keys can be hinted from A, B, C, D, B now",)
    (counts,) = ran.operators
    slack = counts.slack_us[-1]
    assert set(slack) == {"A", "B", "C", "D"}
    assert slack["A"] >= slack["B"] >= slack["C"] >= slack["D"] >= 0
    assert ran.answer == expected("aggregate")


def test_nothing_is_put_into_the_plan_where_prefetching_is_off(runs: Runs) -> None:
    runs.spark.conf.set(KEY, "off")
    ran = runs.run(aggregate, "update")
    assert "Lookahead" not in ran.plan
    assert ran.answer == expected("aggregate")


def test_a_batch_whose_lookahead_fails_to_be_planned_is_planned_without_it(runs: Runs) -> None:
    # Without a cache no store asks for the threshold, and refuses it: the rule alone comes to it.
    with changed_conf(runs.spark, {KEY: "B", f"{KEY}.cache": "off", f"{KEY}.hot.threshold": "x"}):
        ran = runs.run(aggregate, "update")
    assert "Lookahead" not in ran.plan
    assert ran.answer == expected("aggregate")
    with changed_conf(runs.spark, {KEY: "B", f"{KEY}.cache": "off"}):
        ran = runs.run(aggregate, "update")
    assert "LookaheadB" in ran.plan, "it was the threshold"


def sessions(frame: DataFrame) -> DataFrame:
    at = f.timestamp_seconds("n").alias("at")
    gap = f.session_window("at", "5 seconds")
    return frame.select(at, "key").groupBy(gap, "key").count().select("key", "count")


def by_chance(frame: DataFrame) -> DataFrame:
    return frame.select((f.rand() * 10).cast("int").alias("name")).groupBy("name").count()


def by_python(frame: DataFrame) -> DataFrame:
    name = f.udf(lambda key: f"key-{key}", "string")
    return frame.select(name("key").alias("name")).groupBy("name").count()


def with_processor(frame: DataFrame) -> DataFrame:
    class Processor(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self._rows = handle.getValueState("rows", "count bigint")

        def handleInputRows(  # noqa: N802
            self,
            key: Any,
            rows: Iterator[pd.DataFrame],
            timerValues: Any,  # noqa: N803
        ) -> Iterator[pd.DataFrame]:
            count = sum(len(frame) for frame in rows)
            self._rows.update((count,))
            yield pd.DataFrame({"key": [key[0]], "count": [count]})

        def close(self) -> None:
            pass

    out = "key bigint, count bigint"
    return frame.groupBy("key").transformWithStateInPandas(Processor(), out, "Update", "None")


LEFT_ALONE: dict[str, tuple[Callable[[DataFrame], DataFrame], str, tuple[str, ...], str]] = {
    # Spark keeps the state of these two in its own provider and in no other.
    "a join of state format 4": (
        many_rows("inner"), "append", (), "not by Penstock's provider",
    ),
    "transformWithState": (
        with_processor, "update", (), "not by Penstock's provider",
    ),
    "state with another provider": (
        aggregate, "update", (), "not by Penstock's provider",
    ),
    "session windows": (sessions, "complete", (), "session windows are read by scans"),
    "an aggregate over all rows": (
        lambda frame: frame.groupBy().count(), "update", (), "has one key",
    ),
    "a key of another value each time": (
        by_chance, "update", ("B", "C", "D"), "is another thing each time",
    ),
    "a key that Python computes": (by_python, "update", ("B", "C", "D"), "Python"),
}  # fmt: skip


@pytest.mark.parametrize("place", ["B", "C", "D"])
def test_a_source_that_is_not_ours_has_every_place_but_the_log_and_a_reason_for_that(
    runs: Runs, place: str
) -> None:
    with changed_conf(runs.spark, {KEY: place}):
        ran = runs.run_on_files(aggregate, "update")
    assert ran.answer == expected("aggregate")
    (counts,) = ran.operators
    assert counts.candidates == ("B", "C", "D")
    assert counts.active == (place,)
    assert counts.used.get(place, 0) > 0
    assert sum(counts.unused.values()) == 0
    (reason,) = counts.left_out
    assert "only a stream of Penstock's log is read ahead" in reason
    assert reason in ran.notes[0]


def test_where_the_log_is_asked_for_and_there_is_none_the_next_place_hints(runs: Runs) -> None:
    with changed_conf(runs.spark, {KEY: "A"}):
        ran = runs.run_on_files(aggregate, "update")
    assert ran.answer == expected("aggregate")
    (counts,) = ran.operators
    assert counts.active == ("B",)


LEFT_ALONE_CONF = {
    "a join of state format 4": {JOIN_FORMAT: "4"},
    "state with another provider": {PROVIDER: SPARKS_OWN},
}


@pytest.mark.parametrize("shape", LEFT_ALONE)
def test_what_cannot_be_hinted_is_left_alone_with_a_reason(runs: Runs, shape: str) -> None:
    operator, mode, places, reason = LEFT_ALONE[shape]
    with changed_conf(runs.spark, {KEY: "A", **LEFT_ALONE_CONF.get(shape, {})}):
        ran = runs.run(operator, mode, parts=1)
    (counts,) = ran.operators
    assert counts.candidates == places
    assert any(reason in sentence for sentence in counts.left_out), counts.left_out
    assert reason in ran.notes[0]
    assert counts.active == places[:1]
    assert ran.rows
