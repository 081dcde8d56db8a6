"""Casts between types as Spark makes them, and decimals as the whole numbers they are made of."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.devices.operators.arithmetic import nulls_of
from penstock.devices.operators.expressions import Call
from penstock.devices.operators.failures import overflow, overflows_of
from penstock.devices.operators.rows import Numbers, Value, column_of
from penstock.devices.operators.types import arrow_type

EXACT_BELOW = 2.0**49
"""Above it a double has no digits left by which a tie could be told."""
WORDS = 2
"""A decimal has 128 bits: two words, the lower one first."""


def cast(call: Call, values: list[Value], count: int) -> Value:
    """A value as another type: the casts that the plug-in lets through."""
    value, target = values[0], arrow_type(call.type)
    if value.type == target:
        return value
    if pa.types.is_floating(value.type) and pa.types.is_decimal(target):
        return decimals_of(column_of(value, count), target, is_ansi=call.is_ansi)
    if pa.types.is_floating(target):
        return pc.cast(value, target, safe=False)
    if pa.types.is_integer(target) and not call.is_ansi:
        return pc.cast(value, target, safe=False)
    with overflows_of("cast"):
        return pc.cast(value, target)


def unscaled(call: Call, values: list[Value], count: int) -> Value:
    """A decimal of at most 18 digits as the number of its smallest units."""
    column = column_of(values[0], count)
    low = _words_of(column)[:, 0]
    return pa.array(np.ascontiguousarray(low), pa.int64(), mask=nulls_of(column))


def decimals_of(column: pa.Array, target: pa.DataType, *, is_ansi: bool) -> pa.Array:
    """Fractions as decimals of at most 18 digits, rounded half up from their shortest text.

    What is no number becomes null, as in Spark; so does what is too large, unless it fails.
    """
    numbers = np.asarray(column.cast(pa.float64()).fill_null(0.0))
    is_number = np.isfinite(numbers)
    limit = 10**target.precision
    largest = 10.0 * limit
    # What has many more digits than fit need not be looked at closely.
    is_huge = np.abs(numbers) >= largest
    scaled = np.where(is_number & ~is_huge, numbers, 0.0) * 10.0**target.scale
    size = np.abs(scaled)
    is_huge |= size >= largest
    whole = np.floor(size)
    is_tie = np.abs(size - whole - 0.5) <= size * 2.0**-50
    units = np.where(size - whole >= 0.5, whole + 1.0, whole)
    is_large = (size >= EXACT_BELOW) | (units >= float(limit))
    result = np.copysign(np.where(is_large, 0.0, units), scaled).astype(np.int64)
    is_outside = is_number & is_huge
    for place in np.flatnonzero((is_tie | is_large) & is_number & ~is_huge):
        rounded = rounded_units(float(numbers[place]), target.scale)
        is_outside[place] = abs(rounded) >= limit
        result[place] = 0 if is_outside[place] else rounded
    is_null = nulls_of(column)
    if is_null is not None:
        is_outside &= ~is_null
    if is_ansi and is_outside.any():
        raise overflow("cast of a fraction to a decimal")
    is_valid = is_number & ~is_outside & (True if is_null is None else ~is_null)
    return of_unscaled(result, is_valid, target)


def of_unscaled(units: Numbers, is_valid: Numbers, target: pa.DataType) -> pa.Array:
    """Decimals from numbers of their smallest units."""
    words = np.empty((len(units), WORDS), np.int64)
    words[:, 0] = units
    words[:, 1] = units >> 63
    bits = np.packbits(is_valid, bitorder="little")
    buffers = [None if is_valid.all() else pa.py_buffer(bits), pa.py_buffer(words)]
    return pa.Array.from_buffers(target, len(units), buffers)


def _words_of(column: pa.Array) -> Numbers:
    if not len(column):
        return np.empty((0, WORDS), np.int64)
    words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, WORDS)
    return words[column.offset : column.offset + len(column)]


def rounded_units(number: float, scale: int) -> int:
    """The units of a fraction rounded half up from its shortest text."""
    return int(Decimal(repr(number)).scaleb(scale).quantize(Decimal(1), ROUND_HALF_UP))
