"""Sorting and the first rows of an order, with Spark's places for null and not a number."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.devices.operators.comparison import normalized
from penstock.devices.operators.evaluate import column
from penstock.devices.operators.expressions import Expression
from penstock.devices.operators.rows import Rows


class SortKey(msgspec.Struct, frozen=True):
    """An expression to sort by; nulls come first unless told, in a descending order last."""

    expression: Expression
    is_descending: bool = False
    is_null_first: bool | None = None

    @property
    def puts_nulls_first(self) -> bool:
        return not self.is_descending if self.is_null_first is None else self.is_null_first


def sort(keys: tuple[SortKey, ...], rows: Rows) -> Rows:
    """The rows in order; equal ones stay as they were."""
    by = _sort_columns(keys, rows)
    return rows.taken(pc.sort_indices(by.columns, sort_keys=by.directions))


def top(keys: tuple[SortKey, ...], count: int, rows: Rows) -> Rows:
    """The first so many rows of the order."""
    first = min(count, rows.count)
    if not first:
        return rows.taken(pa.array([], pa.int64()))  # Arrow 25 selects nothing with an error
    by = _sort_columns(keys, rows)
    # Every row has its place among the keys, so that there are no ties to be unstable about.
    return rows.taken(pc.select_k_unstable(by.columns, first, sort_keys=by.directions))


@dataclass(frozen=True)
class _SortColumns:
    columns: pa.Table
    directions: list[tuple[str, str]]


def _sort_columns(keys: tuple[SortKey, ...], rows: Rows) -> _SortColumns:
    """Columns that Arrow sorts by as they are, up to three for a key, and the row's own place."""
    columns: dict[str, pa.Array] = {}
    directions: list[tuple[str, str]] = []

    def by(values: pa.Array, *, is_descending: bool) -> None:
        name = f"s{len(columns)}"
        columns[name] = values
        directions.append((name, "descending" if is_descending else "ascending"))

    for key in keys:
        values = column(key.expression, rows)
        if values.null_count:
            by(values.is_null().cast(pa.int8()), is_descending=key.puts_nulls_first)
        if pa.types.is_floating(values.type):
            # Arrow puts what is no number at the end whatever the direction.
            by(pc.is_nan(values).fill_null(False).cast(pa.int8()), is_descending=key.is_descending)
            values = normalized(values)
        by(values, is_descending=key.is_descending)
    # The last one makes the order stable.
    by(pa.array(np.arange(rows.count)), is_descending=False)
    return _SortColumns(pa.table(columns), directions)
