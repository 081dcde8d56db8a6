"""Operators whose eviction is left to Spark say why; code that refers to a watermark is compiled
once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructField, StructType

import penstock
from penstock.client import Client
from support.spark.evicting_queries import (
    JOIN_FORMAT,
    STOCK,
    Driver,
    distinct,
    join_by_key,
    per_window,
    rows,
)
from support.spark.session_settings import session_settings

Fresh = Callable[[str], str]
# Workers have no way to this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
OUT = StructType([StructField("key", LongType()), StructField("count", LongType())])


def sessions(frame: DataFrame) -> DataFrame:
    return frame.groupBy(f.session_window("at", "10 seconds"), "key").count()


def count_group(
    key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    yield pd.DataFrame({"key": [key[0]], "count": [sum(len(frame) for frame in frames)]})


def groups(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").applyInPandasWithState(
        count_group, OUT, StructType([OUT["count"]]), "append", GroupStateTimeout.NoTimeout
    )


class CountRows(StatefulProcessor):
    """Counts the rows of a key in a batch."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        pass

    def handleInputRows(  # noqa: N802, the name is Spark's
        self, key: Any, rows: Iterator[pd.DataFrame], timer_values: Any
    ) -> Iterator[pd.DataFrame]:
        yield pd.DataFrame({"key": [key[0]], "count": [sum(len(frame) for frame in rows)]})

    def close(self) -> None:
        pass


def transformed(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").transformWithStateInPandas(CountRows(), OUT, "Append", "None")


@dataclass(frozen=True)
class Left:
    """A query whose eviction is left to Spark, and what is said of code that compares its times."""

    frame: Callable[[DataFrame], DataFrame]
    reason: str
    code: str
    conf: Mapping[str, str] = field(default_factory=dict)


def unknown(operator: str) -> str:
    return f"left to Spark: this rule does not know how {operator} evicts"


def unknown_code(operator: str) -> str:
    return unknown(operator).replace("evicts", "compares times with a watermark")


def referring(parts: str) -> str:
    return f"code for {parts} refers to the watermark"


LEFT = (
    *(
        Left(frame, unknown(operator), unknown_code(operator))
        for frame, operator in (
            (sessions, "SessionWindowStateStoreSave"),
            (groups, "FlatMapGroupsInPandasWithState"),
            (transformed, "TransformWithStateInPySpark"),
        )
    ),
    Left(
        join_by_key,
        unknown("StreamingSymmetricHashJoin"),
        referring("eviction"),
        {JOIN_FORMAT: "4"},
    ),
    Left(
        distinct,
        unknown("StreamingDeduplicate"),
        referring("late rows"),
        {"spark.sql.streaming.statefulOperator.incrementalCleanupFactor": "1"},
    ),
    Left(
        per_window,
        f"left to Spark: its state is kept by {STOCK[PROVIDER]}, not by Penstock's provider",
        referring("late rows and eviction"),
        {PROVIDER: STOCK[PROVIDER]},
    ),
    Left(
        lambda frame: frame.groupBy("key").count(),
        "it evicts nothing",
        "it compares no times with a watermark",
    ),
)


def test_what_is_not_known_is_left_to_spark_with_the_reason(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path
) -> None:
    """All queries at once: each only has to be planned."""
    stream = fresh("left")
    client.create(stream, "n bigint, key bigint, at timestamp", substreams=1)
    client.append(stream, rows(0, 0))
    source = spark.readStream.format("penstock").load(stream)
    queries = []
    try:
        for number, left in enumerate(LEFT):
            mode = "update" if left.reason == "it evicts nothing" else "append"
            with session_settings(spark, {**left.conf, "spark.sql.shuffle.partitions": "1"}):
                queries.append(
                    left.frame(source.withWatermark("at", "30 seconds"))
                    .writeStream.format("noop")
                    .outputMode(mode)
                    .option("checkpointLocation", str(tmp_path / str(number)))
                    .start()
                )
        for query in queries:
            query.processAllAvailable()
        notes = [
            [(note.rule, note.text) for note in penstock.plan_notes(query)] for query in queries
        ]
    finally:
        for query in queries:
            query.stop()
    for rule, expected in (
        ("eviction", [left.reason for left in LEFT]),
        ("watermark", [left.code for left in LEFT]),
    ):
        said = [[text for of, text in of_query if of == rule] for of_query in notes]
        assert said == [[text] for text in expected]


def compilations(driver: Driver) -> int:
    """Of all batches behind those in which all code is new: Spark meets a watermark that has moved
    in a batch without rows, which follows the one that moved it."""
    ledgers = [each for _, each in sorted(driver.driven.ledgers.items())]
    with_rows = [each.batch for each in ledgers if each.rows]
    assert len(with_rows) == len(MOVING)
    return sum(
        int(each.counters["compilations"]) for each in ledgers if each.batch >= with_rows[WARM_UP]
    )


MOVING = tuple(range(0, 160, 20))
"""Commits begin at, s: the watermark moves with each, and rows expire."""
WARM_UP = 4


@pytest.mark.parametrize("by", ["reference", "spark"])
def test_a_watermark_that_moves_has_nothing_compiled_if_code_refers_to_it(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path, by: str
) -> None:
    driver = Driver(spark, client, fresh("moving"), tmp_path)
    conf = {"spark.penstock.batch.watermark": by, "spark.sql.shuffle.partitions": "1"}
    driver.run(per_window, "append", conf, MOVING)
    assert any(driver.driven.removed(batch) for batch in driver.driven.reported)
    if by == "reference":
        assert compilations(driver) == 0
    else:
        assert compilations(driver) >= len(MOVING) - WARM_UP
