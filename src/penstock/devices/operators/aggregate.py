"""Partial aggregates by keys, yielded as Spark's own aggregation buffers.

Of each group one row: its keys, then the buffers of each function in Spark's order, so that Spark
merges them into its state as if it had made them. A group's order of addition is that of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.devices.operators.arithmetic import INT64_MAX, INT64_MIN, nulls_of, numbers_of
from penstock.devices.operators.evaluate import column
from penstock.devices.operators.expressions import Call, Expression, Literal
from penstock.devices.operators.failures import overflow
from penstock.devices.operators.rows import Rows
from penstock.devices.operators.types import arrow_type
from penstock.errors import BadCall

LOW_BITS = 32


class Aggregate(msgspec.Struct, frozen=True):
    """A function over the rows of a group, of which `where` may take only some."""

    function: str
    """One of sum, count, mean, min, max."""
    arguments: tuple[Expression, ...]
    input_type: str
    """That of the argument; of `count` it does not matter."""
    type: str
    """That of its first buffer."""
    where: Expression | None = None
    is_ansi: bool = False


Buffers: TypeAlias = Callable[[pa.Table], list[pa.Array]]


def aggregate(keys: tuple[Expression, ...], functions: tuple[Aggregate, ...], rows: Rows) -> Rows:
    """Keys and buffers of all groups; no group without a row, and none at all without rows."""
    grouping = _Grouping([column(key, rows) for key in keys], rows)
    buffers = [MAKERS.get(each.function, _unknown)(each, grouping) for each in functions]
    return grouping.answer(buffers)


class _Grouping:
    """The question to Acero: key columns, value columns, and functions of these."""

    def __init__(self, keys: list[pa.Array], rows: Rows) -> None:
        self.rows = rows
        self._columns = {f"k{place}": key for place, key in enumerate(keys)}
        self._keys = list(self._columns)
        self._names: dict[Any, str] = {}
        self._asked: dict[tuple[str, str], None] = {}

    def values(self, name: Any, make: Callable[[], pa.Array]) -> str:
        """The name of a value column; one that was asked for under this name is not made again."""
        if name not in self._names:
            self._names[name] = f"v{len(self._names)}"
            self._columns[self._names[name]] = make()
        return self._names[name]

    def column(self, name: str) -> pa.Array:
        return self._columns[name]

    def ask(self, name: str, function: str) -> str:
        """The name of the column of answers."""
        self._asked[name, function] = None
        return f"{name}_{function}"

    def answer(self, buffers: list[Buffers]) -> Rows:
        table = pa.table(self._columns)
        grouped = table.group_by(self._keys, use_threads=False).aggregate(list(self._asked))
        keys = [_whole(grouped.column(key)) for key in self._keys]
        parts = [part for make in buffers for part in make(grouped)]
        return Rows((*keys, *parts), grouped.num_rows)


def _input(function: Aggregate, grouping: _Grouping) -> str:
    """The argument of a function, null in rows that it does not take."""
    (argument,) = function.arguments
    if function.where is None:
        return grouping.values(argument, lambda: column(argument, grouping.rows))
    taken = Call("case", function.input_type, (function.where, argument))
    return grouping.values(taken, lambda: column(taken, grouping.rows))


def _cast(name: str, target: pa.DataType, grouping: _Grouping) -> str:
    values = grouping.column(name)
    if values.type == target:
        return name
    safe = not pa.types.is_floating(target)
    return grouping.values((name, str(target)), lambda: pc.cast(values, target, safe=safe))


def _count(function: Aggregate, grouping: _Grouping) -> Buffers:
    """Rows of which no argument is null."""
    checked = tuple(a for a in function.arguments if not isinstance(a, Literal) or a.value is None)
    counted: Expression = Literal("int", 1)
    for argument in checked:
        counted = Call("case", "int", (Call("is_not_null", "boolean", (argument,)), counted))
    if function.where is not None:
        counted = Call("case", "int", (function.where, counted))
    name = grouping.values(counted, lambda: column(counted, grouping.rows))
    answer = grouping.ask(name, "count")
    return lambda grouped: [_whole(grouped.column(answer))]


def _sum(function: Aggregate, grouping: _Grouping) -> Buffers:
    target = arrow_type(function.type)
    name = _cast(_input(function, grouping), target, grouping)
    if pa.types.is_decimal(target):
        answer = grouping.ask(name, "sum")
        return lambda grouped: _decimal_sum(_whole(grouped.column(answer)), target)
    if pa.types.is_integer(target) and function.is_ansi and _may_overflow(grouping.column(name)):
        return _checked_sum(name, grouping)
    answer = grouping.ask(name, "sum")
    return lambda grouped: [_whole(grouped.column(answer))]


def _decimal_sum(sums: pa.Array, target: pa.DataType) -> list[pa.Array]:
    """Zero and a mark where there was no value, as Spark begins its decimal sums."""
    return [_or_zero(sums.cast(target)), sums.is_null()]


def _may_overflow(values: pa.Array) -> bool:
    bounds = pc.min_max(values).as_py()
    if bounds["min"] is None:
        return False
    largest = max(abs(bounds["min"]), abs(bounds["max"]))
    return bool(largest * len(values) > INT64_MAX)


def _checked_sum(name: str, grouping: _Grouping) -> Buffers:
    """A sum in two halves, which cannot overflow, put together group by group."""
    values = grouping.column(name)
    numbers, nulls = numbers_of(values), nulls_of(values)
    tops = grouping.values((name, "high"), lambda: pa.array(numbers >> LOW_BITS, mask=nulls))
    rests = grouping.values(
        (name, "low"), lambda: pa.array(numbers & np.int64(2**LOW_BITS - 1), mask=nulls)
    )
    highs, lows = grouping.ask(tops, "sum"), grouping.ask(rests, "sum")

    def whole(grouped: pa.Table) -> list[pa.Array]:
        parts = (grouped.column(name).to_pylist() for name in (highs, lows))
        sums = [
            None if high is None else (high << LOW_BITS) + low
            for high, low in zip(*parts, strict=True)
        ]
        if any(s is not None and not INT64_MIN <= s <= INT64_MAX for s in sums):
            raise overflow("sum of whole numbers")
        return [pa.array(sums, pa.int64())]

    return whole


def _mean(function: Aggregate, grouping: _Grouping) -> Buffers:
    """Sum and count; a group without a value has a sum of zero."""
    target = arrow_type(function.type)
    name = _cast(_input(function, grouping), target, grouping)
    sums, counts = grouping.ask(name, "sum"), grouping.ask(name, "count")
    return lambda grouped: [
        _or_zero(_whole(grouped.column(sums)).cast(target)),
        _whole(grouped.column(counts)),
    ]


def _or_zero(sums: pa.Array) -> pa.Array:
    zero = Decimal(0) if pa.types.is_decimal(sums.type) else 0
    return sums.fill_null(pa.scalar(zero, sums.type))


def _extreme(function: Aggregate, grouping: _Grouping) -> Buffers:
    name = _input(function, grouping)
    if pa.types.is_floating(grouping.column(name).type):
        return _extreme_fraction(function.function, name, grouping)
    answer = grouping.ask(name, function.function)
    return lambda grouped: [_whole(grouped.column(answer))]


def _extreme_fraction(function: str, name: str, grouping: _Grouping) -> Buffers:
    """Not a number is the largest value there is; Acero leaves it out."""
    values = grouping.column(name)
    is_nan = pc.is_nan(values)
    null, nan = pa.scalar(None, values.type), pa.scalar(float("nan"), values.type)
    numbers = grouping.values((name, "numbers"), lambda: pc.if_else(is_nan, null, values))
    nans = grouping.values((name, "is_nan"), lambda: is_nan)
    best, any_nan = grouping.ask(numbers, function), grouping.ask(nans, "max")

    def extremes(grouped: pa.Table) -> list[pa.Array]:
        numbers_best = _whole(grouped.column(best))
        has_nan = _whole(grouped.column(any_nan)).fill_null(False)
        takes_nan = has_nan if function == "max" else pc.and_(has_nan, numbers_best.is_null())
        return [pc.if_else(takes_nan, nan, numbers_best)]

    return extremes


def _whole(chunks: pa.ChunkedArray) -> pa.Array:
    return chunks.combine_chunks() if chunks.num_chunks != 1 else chunks.chunk(0)


def _unknown(function: Aggregate, grouping: _Grouping) -> Buffers:
    raise BadCall(f"function {function.function} is left to Spark", code="unknown_function")


MAKERS: dict[str, Callable[[Aggregate, _Grouping], Buffers]] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "min": _extreme,
    "max": _extreme,
}
