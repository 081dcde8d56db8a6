"""Arithmetic on a device as Spark does it: checked in ANSI mode, else wrapping, null over zero.

It names the same failures as the operations of the CPU do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.devices.gpu.backend import Array
from penstock.devices.gpu.columns import DeviceColumn, dtype_of, shared_validity
from penstock.devices.gpu.fractions import narrowed, widened
from penstock.devices.gpu.scope import Scope
from penstock.devices.operators.arithmetic import INT64_MAX, INT64_MIN
from penstock.devices.operators.expressions import Call
from penstock.devices.operators.failures import division_by_zero, overflow
from penstock.devices.operators.types import arrow_type

Values: TypeAlias = list[DeviceColumn]
WIDE_BYTES = 8


def plain(call: Call, values: Values, scope: Scope) -> DeviceColumn:
    """A sum, difference, product, negation or absolute value, of the type that Spark gives it."""
    xp, target = scope.xp, arrow_type(call.type)
    compute, has_overflown = _PLAIN[call.name]
    numbers = [widened(each.values, xp) for each in values]
    if pa.types.is_decimal(target) and call.name in ("add", "subtract"):
        numbers = [rescaled(each, target.scale) for each in values]
    result = compute(xp, *numbers)
    if (
        call.is_ansi
        and pa.types.is_integer(target)
        and scope.has_failed(has_overflown(xp, result, *numbers), values)
    ):
        raise overflow(call.name)
    if pa.types.is_float32(target):
        result = narrowed(result, xp)
    return DeviceColumn(
        target, result.astype(dtype_of(target), copy=False), shared_validity(values)
    )


def rescaled(column: DeviceColumn, scale: int) -> Array:
    """Decimals in units of a scale that is not below their own."""
    more = scale - column.type.scale
    return column.values * np.int64(10**more) if more else column.values


def divide(call: Call, values: Values, scope: Scope) -> DeviceColumn:
    """A quotient of doubles."""
    left = values[0]
    divisor, valid = _divisor(call, values, scope)
    return DeviceColumn(arrow_type(call.type), left.values / divisor, valid)


def remainder(call: Call, values: Values, scope: Scope) -> DeviceColumn:
    """The remainder of whole numbers, with the sign of the dividend."""
    xp = scope.xp
    left = values[0].values
    divisor, valid = _divisor(call, values, scope)
    # The smallest number over minus one overflows on the way to its remainder of nothing.
    divisor = xp.where(divisor == -1, 1, divisor).astype(left.dtype, copy=False)
    rest = xp.remainder(left, divisor)
    differs = (rest != 0) & ((left < 0) != (divisor < 0))
    rest = xp.where(differs, rest - divisor, rest)
    return DeviceColumn(arrow_type(call.type), rest.astype(left.dtype, copy=False), valid)


def _divisor(call: Call, values: Values, scope: Scope) -> tuple[Array, Array | None]:
    """The divisor with ones for zeros, and the mask without rows that had one."""
    xp, right = scope.xp, values[1]
    is_zero = right.values == 0
    if call.is_ansi and scope.has_failed(is_zero, values):
        raise division_by_zero()
    divisor = xp.where(is_zero, 1, right.values).astype(right.values.dtype, copy=False)
    valid = shared_validity(values)
    return divisor, ~is_zero if valid is None else valid & ~is_zero


def floor(call: Call, values: Values, scope: Scope) -> DeviceColumn:
    """The next whole number below a double, as a bigint.

    Without ANSI mode what is outside becomes the nearest there is, and what is no number 0.
    """
    xp = scope.xp
    below = xp.floor(values[0].values)
    is_small, is_large = below < float(INT64_MIN), below >= float(INT64_MAX)
    is_outside = is_small | is_large | xp.isnan(below)
    if call.is_ansi and scope.has_failed(is_outside, values):
        raise overflow("floor")
    inside = xp.where(is_outside, 0.0, below).astype(np.int64)
    limited = xp.where(is_small, np.int64(INT64_MIN), inside)
    whole = xp.where(is_large, np.int64(INT64_MAX), limited)
    return DeviceColumn(arrow_type(call.type), whole, values[0].valid)


def pane(call: Call, values: Values, scope: Scope) -> DeviceColumn:
    """The start of a time's pane: the last multiple of the slide, from the offset on."""
    slide_us, offset_us = call.parameters
    times = values[0].values.astype(np.int64, copy=False)
    starts = times - scope.xp.remainder(times - np.int64(offset_us), np.int64(slide_us))
    return DeviceColumn(arrow_type(call.type), starts, values[0].valid)


def _multiply_overflows(xp: Any, result: Array, left: Array, right: Array) -> Array:
    if result.dtype.itemsize < WIDE_BYTES:
        return left.astype(np.int64) * right.astype(np.int64) != result
    # Dividing the wrapped product gives the other factor back only if nothing was lost.
    is_plain = (left != 0) & (left != -1)
    quotient = result // xp.where(is_plain, left, np.int64(1))
    is_lost = is_plain & (quotient != right)
    return is_lost | ((left == -1) & (right == np.int64(INT64_MIN)))


def _is_smallest(xp: Any, result: Array, number: Array) -> Array:
    return number == np.iinfo(number.dtype).min


_PLAIN: dict[str, tuple[Callable[..., Array], Callable[..., Array]]] = {
    "add": (
        lambda xp, left, right: left + right,
        lambda xp, result, left, right: ((left ^ result) & (right ^ result)) < 0,
    ),
    "subtract": (
        lambda xp, left, right: left - right,
        lambda xp, result, left, right: ((left ^ right) & (left ^ result)) < 0,
    ),
    "multiply": (lambda xp, left, right: left * right, _multiply_overflows),
    "negate": (lambda xp, number: -number, _is_smallest),
    "abs": (lambda xp, number: xp.abs(number), _is_smallest),
}
