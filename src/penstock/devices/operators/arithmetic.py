"""Arithmetic as Spark does it: checked in ANSI mode, else wrapping, and null over zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.devices.operators.expressions import Call
from penstock.devices.operators.failures import division_by_zero, overflow, overflows_of
from penstock.devices.operators.rows import Numbers, Value, column_of
from penstock.devices.operators.types import arrow_type

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_PLAIN: dict[str, tuple[Callable[..., Value], Callable[..., Value]]] = {
    "add": (pc.add, pc.add_checked),
    "subtract": (pc.subtract, pc.subtract_checked),
    "multiply": (pc.multiply, pc.multiply_checked),
    "negate": (pc.negate, pc.negate_checked),
    "abs": (pc.abs, pc.abs_checked),
}


def plain(call: Call, values: list[Value], count: int) -> Value:
    """A sum, difference, product, negation or absolute value, of the type that Spark gives it."""
    wrapping, checked = _PLAIN[call.name]
    target = arrow_type(call.type)
    with overflows_of(call.name):
        if pa.types.is_integer(target) and call.is_ansi:
            return checked(*values)
        result = wrapping(*values)
        return result if result.type == target else pc.cast(result, target)


def divide(call: Call, values: list[Value], count: int) -> Value:
    """A quotient of doubles."""
    left, right = values
    return pc.divide(left, _without_zeros(call, left, right))


def remainder(call: Call, values: list[Value], count: int) -> Value:
    """The remainder of whole numbers, with the sign of the dividend."""
    left, right = (column_of(value, count) for value in values)
    right = column_of(_without_zeros(call, left, right), count)
    is_known = np.asarray(pc.and_(left.is_valid(), right.is_valid()))
    rest = np.fmod(numbers_of(left), np.where(is_known, numbers_of(right), 1))
    return pa.array(rest, arrow_type(call.type), mask=~is_known)


def floor(call: Call, values: list[Value], count: int) -> Value:
    """The next whole number below a double, as a bigint.

    Without ANSI mode what is outside becomes the nearest there is, and what is no number 0.
    """
    column = column_of(values[0], count)
    below = np.floor(np.asarray(column.fill_null(0.0)))
    is_small, is_large = below < INT64_MIN, below >= float(INT64_MAX)
    is_outside = is_small | is_large | np.isnan(below)
    if call.is_ansi and is_outside.any():
        raise overflow("floor")
    inside = np.where(is_outside, 0.0, below).astype(np.int64)
    whole = np.where(is_large, INT64_MAX, np.where(is_small, INT64_MIN, inside))
    return pa.array(whole, pa.int64(), mask=nulls_of(column))


def pane(call: Call, values: list[Value], count: int) -> Value:
    """The start of a time's pane: the last multiple of the slide, from the offset on."""
    slide_us, offset_us = call.parameters
    column = column_of(values[0], count)
    times = numbers_of(column.cast(pa.int64()))
    starts = times - np.mod(times - offset_us, slide_us)
    return pa.array(starts, pa.int64(), mask=nulls_of(column)).cast(arrow_type(call.type))


def numbers_of(column: pa.Array) -> Numbers:
    """The values of a column of numbers; nulls are zeros."""
    filled = column.fill_null(0) if column.null_count else column
    return np.asarray(filled)


def nulls_of(column: pa.Array) -> Numbers | None:
    """The mask of a column's nulls; None if it has none."""
    return np.asarray(column.is_null()) if column.null_count else None


def _without_zeros(call: Call, left: Value, right: Value) -> Value:
    """The divisor with null for zero, where that does not fail."""
    is_zero = pc.equal(right, pa.scalar(0, right.type))
    if call.is_ansi and pc.any(pc.and_(is_zero, pc.is_valid(left))).as_py():
        raise division_by_zero()
    return pc.if_else(is_zero, pa.scalar(None, right.type), right)
