"""Expressions over the columns of a row, as the plug-in writes them down in JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

import msgspec
import pyarrow as pa

from penstock.devices.operators.types import arrow_type


class Column(msgspec.Struct, frozen=True, tag_field="kind", tag="column"):
    """A column of the row, by its place."""

    index: int


class Literal(msgspec.Struct, frozen=True, tag_field="kind", tag="literal"):
    """A constant. Fractions and decimals are texts, times microseconds, dates days since 1970."""

    type: str
    value: bool | int | str | None = None


class Call(msgspec.Struct, frozen=True, tag_field="kind", tag="call"):
    """A function of other expressions; `type` is that of its result."""

    name: str
    type: str
    arguments: tuple[Expression, ...]
    is_ansi: bool = False
    """It fails where Spark's ANSI mode does, instead of yielding null or wrapping."""
    parameters: tuple[int, ...] = ()


Expression: TypeAlias = Column | Literal | Call

NEVER_FAILING_TYPES = ("double", "float")
FAILING = frozenset({"add", "subtract", "multiply", "negate", "abs", "cast", "floor"})
DIVISIONS = frozenset({"divide", "remainder"})
NULL_SAFE = frozenset({"equal_null_safe"})
"""Functions of two arguments with a value for nulls, so that both are always computed."""


def columns_read(*expressions: Expression) -> frozenset[int]:
    """The places of the columns that expressions read."""
    places: set[int] = set()
    for each in expressions:
        if isinstance(each, Column):
            places.add(each.index)
        elif isinstance(each, Call):
            places |= columns_read(*each.arguments)
    return frozenset(places)


def can_fail(expression: Expression) -> bool:
    """True if a row can make the expression fail: then only rows that need it may have it."""
    if not isinstance(expression, Call):
        return False
    if expression.is_ansi and (
        expression.name in DIVISIONS
        or (expression.name in FAILING and expression.type not in NEVER_FAILING_TYPES)
    ):
        return True
    return any(map(can_fail, expression.arguments))


def argument_places(call: Call) -> tuple[int, ...]:
    """The places of a call's arguments in the order in which Spark computes them: a later one only
    where those before are known, for with a null the result is one. A divisor comes first."""
    places = range(len(call.arguments))
    return tuple(reversed(places)) if call.name in DIVISIONS else tuple(places)


def conjuncts(condition: Expression) -> list[Expression]:
    """The conditions that `and` joins, in the order in which Spark's filter looks at them: whether
    a column is null comes first, before whatever reads it."""
    parts = _joined_by_and(condition)
    return sorted(parts, key=lambda part: not _is_null_check(part))


def _joined_by_and(condition: Expression) -> list[Expression]:
    if isinstance(condition, Call) and condition.name == "and":
        return [part for side in condition.arguments for part in _joined_by_and(side)]
    return [condition]


def _is_null_check(condition: Expression) -> bool:
    return (
        isinstance(condition, Call)
        and condition.name == "is_not_null"
        and isinstance(condition.arguments[0], Column)
    )


def scalar_of(literal: Literal) -> pa.Scalar:
    """The constant as a typed scalar."""
    target, value = arrow_type(literal.type), literal.value
    if value is None:
        return pa.scalar(None, target)
    if pa.types.is_floating(target):
        return pa.scalar(float(value), target)
    if pa.types.is_decimal(target):
        return pa.scalar(Decimal(value), target)
    if pa.types.is_timestamp(target):
        return pa.scalar(value, pa.int64()).cast(target)
    if pa.types.is_date(target):
        return pa.scalar(value, pa.int32()).cast(target)
    return pa.scalar(value, target)
