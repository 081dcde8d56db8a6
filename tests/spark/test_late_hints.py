"""Rows that are late by the watermark: their keys are not hinted where the operator drops them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

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

LAST = (PARTS - 1) * ROWS
"""The first row of the last part."""
IN_TIME = [row for row in ALL if row["n"] < LAST or row["n"] % 2 == 1]


@pytest.fixture
def runs(spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path) -> Iterator[Runs]:
    with hinting_runs(spark, client, fresh, tmp_path) as runs:
        yield runs


def timed(frame: DataFrame) -> DataFrame:
    """Half of the rows of the last part are late, and were not for the batch before theirs."""
    newest = (PARTS - 2) * ROWS
    at = f.timestamp_seconds(f.expr(f"if(n >= {LAST} and n % 2 = 0, {newest}, n + 1)"))
    rows = frame.select(f.format_string("key-%d", "key").alias("name"), at.alias("at"))
    return rows.withWatermark("at", "0 seconds")


def deduplicate(frame: DataFrame) -> DataFrame:
    return timed(frame).dropDuplicates(["name", "at"])


def deduplicate_within_watermark(frame: DataFrame) -> DataFrame:
    return timed(frame).dropDuplicatesWithinWatermark(["name", "at"])


def pandas_state(frame: DataFrame) -> DataFrame:
    # In here, so that Python workers get it whole and need not import this file.
    def pass_on(
        key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        state.update((sum(len(frame) for frame in frames),))
        yield pd.DataFrame({"name": [key[0]]})

    groups = timed(frame).groupBy("name", "at")
    timeout = GroupStateTimeout.EventTimeTimeout
    return groups.applyInPandasWithState(pass_on, "name string", "count bigint", "append", timeout)


def join(frame: DataFrame) -> DataFrame:
    """A row of either side meets itself and no other."""
    other = timed(frame).withColumnsRenamed({"name": "other", "at": "other_at"})
    return timed(frame).join(other, f.expr("name = other and at = other_at")).select("name")


Operator = Callable[[DataFrame], DataFrame]


@pytest.mark.parametrize("place", ["A", "B", "D"])
def test_keys_of_rows_that_are_late_by_the_watermark_are_not_hinted(runs: Runs, place: str) -> None:
    check(runs, deduplicate, place, hints=1, reads=1)


@pytest.mark.parametrize("place", ["A", "B"])
def test_late_rows_of_a_deduplication_within_the_watermark_are_not_hinted(
    runs: Runs, place: str
) -> None:
    check(runs, deduplicate_within_watermark, place, hints=1, reads=1)


def test_late_rows_of_groups_of_pandas_that_time_out_are_not_hinted(runs: Runs) -> None:
    check(runs, pandas_state, "B", hints=1, reads=1)


@pytest.mark.parametrize("place", ["A", "B"])
def test_late_rows_of_either_side_of_a_join_are_not_hinted(runs: Runs, place: str) -> None:
    # Both sides have each row, and of each the numbers of both sides are read. The side that comes
    # second also reads the row that it meets.
    check(runs, join, place, hints=4, reads=5)


def check(runs: Runs, operator: Operator, place: str, *, hints: int, reads: int) -> None:
    """So many keys are hinted, and so many read, of each row that is in time, and of no other."""
    with changed_conf(runs.spark, {KEY: place}):
        ran = runs.run(operator, "append")
    assert sum(ran.answer.values()) == len(IN_TIME)
    (counts,) = ran.operators
    # No store is open yet when keys of the first batch are hinted from below the shuffle, and no
    # batch is before it.
    unheard = 0 if place == "D" else ROWS
    assert counts.hinted[place] == hints * (len(IN_TIME) - unheard)
    assert counts.hits + counts.misses == reads * len(IN_TIME)
    assert sum(counts.unused.values()) == 0
