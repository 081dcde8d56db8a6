"""Comparisons on a device: every value becomes a whole number in Spark's order of its type.

Not a number equals itself and is above all numbers; both zeros are one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.devices.gpu.backend import Array, Backend
from penstock.devices.gpu.columns import DeviceColumn, dtype_of, shared_validity, validity
from penstock.devices.gpu.scope import Scope, number_of
from penstock.devices.gpu.texts import ordered, shared
from penstock.devices.operators.expressions import Call, Literal, scalar_of

TRUTH = pa.bool_()
EQUALITIES = frozenset({"equal", "equal_null_safe"})
_BITS: dict[int, tuple[type[np.signedinteger[Any]], int]] = {4: (np.int32, 31), 8: (np.int64, 63)}
"""Of a fraction's size in bytes, the whole number of the same size and the place of its sign."""
_COMPARED: dict[str, Callable[[Array, Array], Array]] = {
    "equal": lambda left, right: left == right,
    "equal_null_safe": lambda left, right: left == right,
    "less": lambda left, right: left < right,
    "less_equal": lambda left, right: left <= right,
    "greater": lambda left, right: left > right,
    "greater_equal": lambda left, right: left >= right,
}


def compared(call: Call, values: list[DeviceColumn], scope: Scope) -> DeviceColumn:
    """A comparison of two columns of one type."""
    backend = scope.backend
    columns = shared(values, backend)
    if call.name not in EQUALITIES and pa.types.is_string(columns[0].type):
        # Both have one dictionary, and its order is made once.
        columns = _ordered_alike(columns, backend)
    left, right = columns
    answer = _COMPARED[call.name](ordinals(left, backend), ordinals(right, backend))
    if call.name != "equal_null_safe":
        return DeviceColumn(TRUTH, answer, shared_validity(columns))
    both = validity(left, backend), validity(right, backend)
    return DeviceColumn(TRUTH, (answer & both[0] & both[1]) | ~(both[0] | both[1]))


def _ordered_alike(columns: list[DeviceColumn], backend: Backend) -> list[DeviceColumn]:
    xp, count = backend.xp, len(columns[0].values)
    joined = xp.concatenate([column.values for column in columns])
    whole = ordered(DeviceColumn(columns[0].type, joined, None, columns[0].dictionary), backend)
    halves = whole.values[:count], whole.values[count:]
    return [
        DeviceColumn(column.type, codes, column.valid, whole.dictionary)
        for column, codes in zip(columns, halves, strict=True)
    ]


def ordinals(column: DeviceColumn, backend: Backend, *, has_one_zero: bool = True) -> Array:
    """Whole numbers in the order of the values; those of texts are their codes."""
    values = column.values
    if pa.types.is_boolean(column.type):
        return values.astype(np.int8)
    if not pa.types.is_floating(column.type):
        return values
    xp = backend.xp
    whole, sign = _BITS[values.dtype.itemsize]
    # There are many ways to write what is no number.
    nan = values.dtype.type(np.nan).view(whole)
    bits = xp.where(xp.isnan(values), nan, values.view(whole))
    if has_one_zero:
        # Not by adding zero, which makes zero of other floats, too (see `fractions`).
        bits = xp.where(bits == np.iinfo(whole).min, whole(0), bits)
    return _folded(bits, sign)


def of_ordinals(numbers: Array, kind: pa.DataType) -> Array:
    """The values of whole numbers that `ordinals` made of values."""
    dtype = dtype_of(kind)
    if not pa.types.is_floating(kind):
        return numbers.astype(dtype)
    whole, sign = _BITS[dtype.itemsize]
    return _folded(numbers.astype(whole), sign).view(dtype)


def _folded(bits: Array, sign: int) -> Array:
    """Negative fractions have their order reversed in bits; doing it twice undoes it."""
    rest = bits.dtype.type((1 << sign) - 1)
    return bits ^ ((bits >> bits.dtype.type(sign)) & rest)


def is_in(call: Call, value: DeviceColumn, scope: Scope) -> DeviceColumn:
    """Membership among constants; null if unknown: for a null, or by a null among them."""
    xp = scope.xp
    members = [scalar_of(each) for each in call.arguments[1:] if isinstance(each, Literal)]
    known = [number_of(each) for each in members if each.is_valid]
    hit = xp.zeros(scope.count, dtype=bool)
    if known:
        (numbers,) = scope.backend.upload([np.array(known, dtype_of(value.type))])
        constants = DeviceColumn(value.type, numbers)
        hit = xp.isin(ordinals(value, scope.backend), ordinals(constants, scope.backend))
    answer = DeviceColumn(TRUTH, hit, value.valid)
    return answer.where(hit) if len(known) < len(members) else answer


def normalized(column: DeviceColumn, backend: Backend) -> DeviceColumn:
    """Fractions as keys of groups: one zero, and one not-a-number."""
    values = of_ordinals(ordinals(column, backend), column.type)
    return DeviceColumn(column.type, values, column.valid)
