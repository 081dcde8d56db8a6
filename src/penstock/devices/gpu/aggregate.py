"""Partial aggregates by keys on a device, yielded as Spark's own aggregation buffers.

Whole numbers are added in any order, for their sum does not depend on it. Doubles are added in an
order that depends on the rows alone, so that the same rows have the same sum every time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from penstock.devices.gpu.backend import Array
from penstock.devices.gpu.columns import (
    UNSCALED_DIGITS_MAX,
    DeviceColumn,
    DeviceRows,
    is_true,
    shared_validity,
)
from penstock.devices.gpu.comparison import TRUTH, of_ordinals, ordinals
from penstock.devices.gpu.evaluate import column
from penstock.devices.gpu.fractions import widened
from penstock.devices.gpu.grouping import Groups, fits_word, groups_of, key_words
from penstock.devices.gpu.texts import ordered
from penstock.devices.operators.aggregate import Aggregate
from penstock.devices.operators.arithmetic import INT64_MAX, INT64_MIN
from penstock.devices.operators.expressions import Call, Expression
from penstock.devices.operators.failures import overflow
from penstock.devices.operators.types import arrow_type
from penstock.errors import BadCall

COUNT = pa.int64()


def aggregate(
    keys: tuple[Expression, ...], functions: tuple[Aggregate, ...], rows: DeviceRows
) -> DeviceRows:
    """Keys and buffers of all groups; no group without a row, and none at all without rows."""
    columns = [column(key, rows) for key in keys]
    words = key_words(columns, rows.count, rows.backend)
    question = _Question(rows, groups_of(words, rows.backend))
    buffers: list[DeviceColumn] = []
    for each in functions:
        buffers += MAKERS.get(each.function, _unknown)(each, question)
    firsts = question.groups.firsts
    whole = (*(key.taken(firsts) for key in columns), *buffers)
    return DeviceRows(rows.backend, whole, question.groups.count)


class _Question:
    """The rows and their groups; arguments and counts are computed once, whoever asks for them."""

    def __init__(self, rows: DeviceRows, groups: Groups) -> None:
        self.rows = rows
        self.groups = groups
        self._columns: dict[Expression, DeviceColumn] = {}
        self._counts: dict[Expression, Array] = {}

    def column(self, expression: Expression) -> DeviceColumn:
        if expression not in self._columns:
            self._columns[expression] = column(expression, self.rows)
        return self._columns[expression]

    def counts(self, expression: Expression) -> Array:
        """The number of known values in each group."""
        if expression not in self._counts:
            valid = self.column(expression).valid
            self._counts[expression] = self.counted(valid)
        return self._counts[expression]

    def counted(self, mask: Array | None) -> Array:
        """The number of rows in each group that a mask takes, or of all of them."""
        return self._sizes if mask is None else self.groups.sums(mask.astype(np.int64))

    @cached_property
    def _sizes(self) -> Array:
        return self.groups.sums(self.rows.backend.xp.ones(self.rows.count, dtype=np.int64))

    def filled(self, values: DeviceColumn, number: np.generic) -> Array:
        """The values with a number for nulls."""
        if values.valid is None:
            return values.values
        return self.rows.backend.xp.where(values.valid, values.values, number)


def _input(function: Aggregate) -> Expression:
    """The argument of a function, null in rows that it does not take."""
    (argument,) = function.arguments
    if function.where is None:
        return argument
    return Call("case", function.input_type, (function.where, argument))


def _count(function: Aggregate, question: _Question) -> list[DeviceColumn]:
    """Rows of which no argument is null."""
    mask = shared_validity([question.column(each) for each in function.arguments])
    if function.where is not None:
        taken = is_true(question.column(function.where))
        mask = taken if mask is None else mask & taken
    return [DeviceColumn(COUNT, question.counted(mask))]


def _sum(function: Aggregate, question: _Question) -> list[DeviceColumn]:
    target = arrow_type(function.type)
    argument = _input(function)
    counts = question.counts(argument)
    has_values = counts > 0
    if pa.types.is_decimal(target):
        empty = DeviceColumn(TRUTH, ~has_values)
        return [_decimal_sum(argument, target, question), empty]
    if pa.types.is_floating(target):
        return [DeviceColumn(target, _double_sum(argument, question), has_values)]
    whole = question.filled(question.column(argument), np.int64(0)).astype(np.int64, copy=False)
    if not function.is_ansi:
        return [DeviceColumn(target, question.groups.sums(whole), has_values)]
    words = question.groups.exact_sums(whole)
    if not bool(fits_word(words).all()):
        raise overflow("sum of whole numbers")
    return [DeviceColumn(target, words[:, 0], has_values)]


def _double_sum(argument: Expression, question: _Question) -> Array:
    summed = question.column(argument)
    wide = replace(summed, values=widened(summed.values, question.rows.backend.xp))
    values = question.filled(wide, np.float64(0.0))
    return question.groups.ordered_sums(values.astype(np.float64, copy=False))


def _decimal_sum(argument: Expression, target: pa.DataType, question: _Question) -> DeviceColumn:
    """The sum of decimals; zero where there is no value, as Spark begins its decimal sums."""
    words = question.groups.exact_sums(question.filled(question.column(argument), np.int64(0)))
    is_narrow = target.precision <= UNSCALED_DIGITS_MAX
    return DeviceColumn(target, words[:, 0] if is_narrow else words)


def _mean(function: Aggregate, question: _Question) -> list[DeviceColumn]:
    """Sum and count; a group without a value has a sum of zero."""
    target = arrow_type(function.type)
    argument = _input(function)
    counts = DeviceColumn(COUNT, question.counts(argument))
    if pa.types.is_decimal(target):
        return [_decimal_sum(argument, target, question), counts]
    return [DeviceColumn(target, _double_sum(argument, question)), counts]


def _extreme(function: Aggregate, question: _Question) -> list[DeviceColumn]:
    backend = question.rows.backend
    argument = _input(function)
    values = ordered(question.column(argument), backend)
    is_max = function.function == "max"
    nothing = np.int64(INT64_MIN if is_max else INT64_MAX)
    numbers = ordinals(values, backend, has_one_zero=False).astype(np.int64, copy=False)
    if values.valid is not None:
        numbers = backend.xp.where(values.valid, numbers, nothing)
    best = question.groups.extremes(numbers, is_max=is_max)
    has_values = question.counts(argument) > 0
    best = backend.xp.where(has_values, best, np.int64(0))
    return [
        DeviceColumn(values.type, of_ordinals(best, values.type), has_values, values.dictionary)
    ]


def _unknown(function: Aggregate, question: _Question) -> list[DeviceColumn]:
    raise BadCall(f"function {function.function} is left to Spark", code="unknown_function")


Maker: TypeAlias = Callable[[Aggregate, _Question], list[DeviceColumn]]
MAKERS: dict[str, Maker] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "min": _extreme,
    "max": _extreme,
}
