"""Comparisons as Spark makes them: not a number equals itself and is above all numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from penstock.devices.operators.rows import Value

Compare: TypeAlias = Callable[[Value, Value], Value]


def equal(left: Value, right: Value) -> Value:
    same = pc.equal(left, right)
    if not _are_fractions(left):
        return same
    return pc.or_(same, pc.and_(pc.is_nan(left), pc.is_nan(right)))


def less(left: Value, right: Value) -> Value:
    below = pc.less(left, right)
    if not _are_fractions(left):
        return below
    return pc.or_(below, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))


def less_equal(left: Value, right: Value) -> Value:
    return pc.invert(less(right, left))


def greater(left: Value, right: Value) -> Value:
    return less(right, left)


def greater_equal(left: Value, right: Value) -> Value:
    return pc.invert(less(left, right))


def equal_null_safe(left: Value, right: Value) -> Value:
    """Nulls equal each other and nothing else; never null itself."""
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(equal(left, right), False), both_null)


def is_in(value: Value, members: list[pa.Scalar]) -> Value:
    """Membership among constants; null if unknown: for a null, or by a null among them."""
    known = [member for member in members if member.is_valid]
    hit = pc.is_in(value, value_set=_array_of(known, members[0].type))
    unknown = pc.is_null(value)
    if len(known) < len(members):
        unknown = pc.or_(unknown, pc.invert(hit))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), hit)


def normalized(value: Value) -> Value:
    """A fraction as a key of groups: one zero, and one not-a-number."""
    nan = pa.scalar(float("nan"), value.type)
    return pc.if_else(pc.is_nan(value), nan, pc.add(value, pa.scalar(0.0, value.type)))


COMPARISONS: dict[str, Compare] = {
    "equal": equal,
    "less": less,
    "less_equal": less_equal,
    "greater": greater,
    "greater_equal": greater_equal,
    "equal_null_safe": equal_null_safe,
}


def _are_fractions(value: Value) -> bool:
    return bool(pa.types.is_floating(value.type))


def _array_of(scalars: list[pa.Scalar], kind: pa.DataType) -> pa.Array:
    if not scalars:
        return pa.array([], kind)
    return pa.concat_arrays([pa.repeat(scalar, 1) for scalar in scalars])
