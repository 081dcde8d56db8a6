"""Columns of rows for tests of operations, and the rows of an answer as plain tuples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.devices.operators.expressions import Call, Column, Expression, Literal
from penstock.devices.operators.rows import Rows
from penstock.devices.operators.types import arrow_type


def rows(columns: Mapping[str, Sequence[Any]] | Sequence[tuple[str, Sequence[Any]]]) -> Rows:
    """Rows of columns by the names of their types."""
    pairs = list(columns.items() if isinstance(columns, Mapping) else columns)
    arrays = tuple(pa.array(values, arrow_type(kind)) for kind, values in pairs)
    return Rows(arrays, len(arrays[0]))


def listed(answer: Rows) -> list[tuple[Any, ...]]:
    """Rows as tuples; no number as a word, so that it equals itself."""
    columns = [[comparable(value) for value in column.to_pylist()] for column in answer.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * answer.count


def comparable(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def call(name: str, kind: str, *arguments: Expression, is_ansi: bool = True) -> Call:
    return Call(name, kind, arguments, is_ansi=is_ansi)


def column(index: int) -> Column:
    return Column(index)


def literal(kind: str, value: bool | int | str | None) -> Literal:
    return Literal(kind, value)
