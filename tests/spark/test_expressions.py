"""Random expressions in Spark and in workers: the same values of every row, or both fail.

What the plug-in translates is evaluated on the CPU, over the rows that Spark reads; what it leaves
to Spark is not looked at. Values are compared bit for bit, so that the sign of a zero counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.devices.operators.evaluate import column
from penstock.devices.operators.expressions import Expression
from penstock.devices.operators.rows import Rows
from penstock.errors import BadCall
from support.spark.translated_expressions import translated
from support.spark.typed_expressions import TypedExpressions
from support.spark.window_runs import conf

ANSI = "spark.sql.ansi.enabled"
ALONE = {"spark.sql.subexpressionElimination.enabled": "false"}
"""A part that several expressions share is computed for each of them, where it is needed."""
ROWS = 48
EXPRESSIONS = 240
TRANSLATED_MIN = 0.6
FAILING_TRIED = 40
"""Expressions that fail in ANSI mode and are run by Spark on a row for which they do."""


class Evaluated(NamedTuple):
    """An expression with its values, or with the rows for which it fails."""

    text: str
    values: pa.Array
    failing: tuple[int, ...]


@pytest.fixture(scope="module")
def made() -> TypedExpressions:
    return TypedExpressions(seed=11)


@pytest.fixture(scope="module")
def table(made: TypedExpressions) -> pa.Table:
    return made.rows(ROWS)


@pytest.fixture(scope="module")
def frame(
    spark: SparkSession, table: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> DataFrame:
    path = tmp_path_factory.mktemp("expressions") / "rows.parquet"
    pq.write_table(table, Path(path))
    return spark.read.parquet(str(path))


def evaluated(text: str, expression: Expression, table: pa.Table) -> Evaluated:
    """The expression of all rows; row by row where one fails."""
    rows = Rows(tuple(each.combine_chunks() for each in table.columns), table.num_rows)
    try:
        return Evaluated(text, column(expression, rows), ())
    except BadCall:
        pass
    failing, values = [], []
    for place in range(rows.count):
        row = Rows(tuple(each[place : place + 1] for each in rows.columns), 1)
        try:
            values.append(column(expression, row))
        except BadCall:
            failing.append(place)
    return Evaluated(text, pa.concat_arrays(values) if values else pa.nulls(0), tuple(failing))


def by_spark(frame: DataFrame, texts: Sequence[str]) -> list[pa.Array]:
    """The values of expressions, in the order of the rows."""
    named = [f"{text} as e{place}" for place, text in enumerate(texts)]
    answer = frame.selectExpr("id", *named).toArrow().sort_by("id")
    return [answer.column(place + 1).combine_chunks() for place in range(len(texts))]


def bits(values: pa.Array) -> list[Any]:
    """Values that are equal if they are the same in every bit; no number is a word."""
    if pa.types.is_floating(values.type):
        return [None if value is None else f"{value!r}" for value in values.to_pylist()]
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return list(values.to_pylist())


def differing(ours: Evaluated, theirs: pa.Array, ids: Sequence[int]) -> list[str]:
    rows = zip(ids, bits(ours.values), bits(theirs), strict=True)
    return [
        f"{ours.text}: row {row} is {mine}, in Spark {value}"
        for row, mine, value in rows
        if mine != value
    ]


@pytest.mark.parametrize("is_ansi", [False, True])
def test_an_expression_has_the_values_that_spark_gives_it_or_fails_as_there(
    spark: SparkSession,
    frame: DataFrame,
    table: pa.Table,
    made: TypedExpressions,
    is_ansi: bool,
) -> None:
    texts = [made.expression() for _ in range(EXPRESSIONS)]
    with conf(spark, {ANSI: str(is_ansi).lower(), **ALONE}):
        ours = [
            evaluated(text, expression, table)
            for text, expression in zip(texts, translated(frame, texts), strict=True)
            if expression is not None
        ]
        assert len(ours) >= TRANSLATED_MIN * EXPRESSIONS
        whole = [each for each in ours if not each.failing]
        theirs = by_spark(frame, [each.text for each in whole])
        problems = [
            problem
            for mine, values in zip(whole, theirs, strict=True)
            for problem in differing(mine, values, range(ROWS))
        ]
        failing = [each for each in ours if each.failing]
        assert bool(failing) == is_ansi
        for each in failing[:FAILING_TRIED]:
            problems += failing_problems(frame, each)
    assert problems == []


def failing_problems(frame: DataFrame, ours: Evaluated) -> list[str]:
    """What Spark does otherwise with an expression of which some rows fail."""
    problems = []
    ids = [place for place in range(ROWS) if place not in ours.failing]
    try:
        (values,) = by_spark(frame.where(~f.col("id").isin(*ours.failing)), [ours.text])
        problems += differing(ours, values, ids) if ids else []
    except Exception as error:
        problems.append(f"{ours.text}: only Spark fails in rows {ids}: {str(error)[:200]}")
    row = ours.failing[0]
    try:
        by_spark(frame.where(f.col("id") == row), [ours.text])
    except Exception:
        return problems
    return [*problems, f"{ours.text}: row {row} fails, and not in Spark"]
