"""Casts between types on a device, as Spark makes them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.devices.gpu.arithmetic import rescaled
from penstock.devices.gpu.backend import Array
from penstock.devices.gpu.columns import UNSCALED_DIGITS_MAX, DeviceColumn, dtype_of
from penstock.devices.gpu.fractions import narrowed, widened
from penstock.devices.gpu.scope import Scope
from penstock.devices.operators.casts import EXACT_BELOW, rounded_units
from penstock.devices.operators.expressions import Call
from penstock.devices.operators.failures import overflow
from penstock.devices.operators.types import arrow_type

INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""The digits of the largest whole number, by its bits."""


def is_cast_taken(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a device makes a cast between these types."""
    types = pa.types
    if source == target:
        return True
    if types.is_decimal(target):
        if target.precision > UNSCALED_DIGITS_MAX:
            return False
        room = target.precision - target.scale
        if types.is_integer(source):
            return bool(room >= INTEGER_DIGITS[source.bit_width])
        if types.is_decimal(source):
            return bool(target.scale >= source.scale and room >= source.precision - source.scale)
        return bool(types.is_floating(source))
    if types.is_integer(source):
        return bool(types.is_integer(target) or types.is_floating(target))
    return bool(types.is_floating(source) and types.is_floating(target))


def cast(call: Call, values: list[DeviceColumn], scope: Scope) -> DeviceColumn:
    """A value as another type."""
    (value,), target = values, arrow_type(call.type)
    source = value.type
    if source == target:
        return value
    if pa.types.is_decimal(target):
        if pa.types.is_floating(source):
            return _decimals(call, value, target, scope)
        if pa.types.is_decimal(source):
            return DeviceColumn(target, rescaled(value, target.scale), value.valid)
        units = value.values.astype(np.int64) * np.int64(10**target.scale)
        return DeviceColumn(target, units, value.valid)
    if pa.types.is_floating(source):
        wide = widened(value.values, scope.xp)
        is_narrow = pa.types.is_float32(target)
        return DeviceColumn(target, narrowed(wide, scope.xp) if is_narrow else wide, value.valid)
    numbers = value.values.astype(dtype_of(target))
    if (
        call.is_ansi
        and pa.types.is_integer(target)
        and scope.has_failed(numbers.astype(np.int64) != value.values, values)
    ):
        raise overflow("cast")
    return DeviceColumn(target, numbers, value.valid)


def unscaled(call: Call, values: list[DeviceColumn], scope: Scope) -> DeviceColumn:
    """A decimal of at most 18 digits as the number of its smallest units, which it is here."""
    return DeviceColumn(arrow_type(call.type), values[0].values, values[0].valid)


def _decimals(call: Call, value: DeviceColumn, target: pa.DataType, scope: Scope) -> DeviceColumn:
    """Fractions as decimals, rounded half up from their shortest text.

    A device knows no texts of numbers, so those that are near a tie are rounded on the host. What
    is no number becomes null, as in Spark; so does what is too large, unless it fails.
    """
    xp = scope.xp
    numbers = widened(value.values, xp)
    limit = 10**target.precision
    largest = 10.0 * limit
    is_number = xp.isfinite(numbers)
    is_huge = xp.abs(numbers) >= largest
    scaled = xp.where(is_number & ~is_huge, numbers, 0.0) * 10.0**target.scale
    size = xp.abs(scaled)
    is_huge = is_huge | (size >= largest)
    whole = xp.floor(size)
    is_tie = xp.abs(size - whole - 0.5) <= size * 2.0**-50
    units = xp.where(size - whole >= 0.5, whole + 1.0, whole)
    is_large = (size >= EXACT_BELOW) | (units >= float(limit))
    result = xp.copysign(xp.where(is_large, 0.0, units), scaled).astype(np.int64)
    is_outside = is_number & is_huge
    unsure = (is_tie | is_large) & is_number & ~is_huge
    result, is_outside = _rounded_on_host(numbers, unsure, result, is_outside, target, scope)
    if call.is_ansi and scope.has_failed(is_outside, [value]):
        raise overflow("cast of a fraction to a decimal")
    return DeviceColumn(target, result, value.valid).where(is_number & ~is_outside)


def _rounded_on_host(
    numbers: Array,
    unsure: Array,
    result: Array,
    is_outside: Array,
    target: pa.DataType,
    scope: Scope,
) -> tuple[Array, Array]:
    places = scope.xp.flatnonzero(unsure)
    if not len(places):
        return result, is_outside
    (near_ties,) = scope.backend.download([numbers[places]])
    rounded = [rounded_units(float(number), target.scale) for number in near_ties]
    limit = 10**target.precision
    fits = np.array([abs(units) < limit for units in rounded])
    kept = np.array([units if fit else 0 for units, fit in zip(rounded, fits, strict=True)])
    units, is_inside = scope.backend.upload([kept.astype(np.int64), fits])
    result[places] = units
    is_outside[places] = ~is_inside
    return result, is_outside
