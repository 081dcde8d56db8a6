"""Expressions of SQL as the plug-in translates them, taken from a plan that Spark has made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import ArithmeticException
from pyspark.sql import DataFrame

from penstock.devices.operators.expressions import Expression

NOT_TAKEN = "NotTaken"


def translated(frame: DataFrame, texts: Sequence[str]) -> list[Expression | None]:
    """The expressions over the columns of a frame; None for one that is left to Spark, or that it
    refuses itself while it computes its constants."""
    try:
        return _translated(frame, texts)
    except ArithmeticException:
        if len(texts) == 1:
            return [None]
        half = len(texts) // 2
        return [*translated(frame, texts[:half]), *translated(frame, texts[half:])]


def _translated(frame: DataFrame, texts: Sequence[str]) -> list[Expression | None]:
    jvm: Any = frame.sparkSession._jvm
    columnar = jvm.org.apache.spark.sql.penstock.columnar
    output = frame._jdf.queryExecution().analyzed().output()
    translation = columnar.ExpressionTranslation(columnar.Columns.of(output))
    named = [f"{text} as e{place}" for place, text in enumerate(texts)]
    project = frame.selectExpr(*named)._jdf.queryExecution().sparkPlan()
    computed = project.projectList()
    return [_described(translation, computed.apply(place)) for place in range(len(texts))]


def _described(translation: Any, expression: Any) -> Expression | None:
    try:
        text = translation.apply(expression).toString()
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() != NOT_TAKEN:
            raise
        return None
    described: Expression = msgspec.json.decode(text, type=Expression)
    return described
