"""Evaluation of expressions on a device, a column at a time, without leaving it."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TypeAlias

import pyarrow as pa

from penstock.devices.gpu import arithmetic, casts
from penstock.devices.gpu.backend import Array
from penstock.devices.gpu.columns import (
    DeviceColumn,
    DeviceRows,
    is_true,
    shared_validity,
    validity,
)
from penstock.devices.gpu.comparison import TRUTH, compared, is_in, normalized
from penstock.devices.gpu.scope import Scope, constant
from penstock.devices.gpu.texts import by_dictionary, shared
from penstock.devices.operators.expressions import (
    NULL_SAFE,
    Call,
    Column,
    Expression,
    Literal,
    argument_places,
    conjuncts,
)
from penstock.devices.operators.types import arrow_type
from penstock.errors import BadCall

Function: TypeAlias = Callable[[Call, list[DeviceColumn], Scope], DeviceColumn]
Branch: TypeAlias = tuple[Array, DeviceColumn]
"""The rows that take a branch, and the column of its values."""


def evaluate(expression: Expression, scope: Scope) -> DeviceColumn:
    """The values of an expression for all rows; right for those that need it."""
    if isinstance(expression, Column):
        return scope.rows.columns[expression.index]
    if isinstance(expression, Literal):
        return constant(expression, scope)
    if expression.name in BY_NEED:
        return BY_NEED[expression.name](expression, scope)
    if expression.name in FUNCTIONS:
        return FUNCTIONS[expression.name](expression, _arguments(expression, scope), scope)
    raise BadCall(f"function {expression.name} is left to Spark", code="unknown_function")


def _arguments(call: Call, scope: Scope) -> list[DeviceColumn]:
    """The values of a call's arguments, each needed only where those before it are known."""
    values: dict[int, DeviceColumn] = {}
    for place in argument_places(call):
        value = evaluate(call.arguments[place], scope)
        values[place] = value
        if value.valid is not None and call.name not in NULL_SAFE:
            scope = scope.within(value.valid)
    return [values[place] for place in range(len(values))]


def column(expression: Expression, rows: DeviceRows) -> DeviceColumn:
    """The column of an expression that all rows need."""
    return evaluate(expression, Scope(rows))


def mask(condition: Expression, rows: DeviceRows) -> Array:
    """The mask of a filter's condition: true where it is, false for false and null. Conjuncts are
    looked at in turn, each for the rows that are left, as on the CPU."""
    first, *others = conjuncts(condition)
    left = is_true(column(first, rows))
    for conjunct in others:
        left = left & is_true(evaluate(conjunct, Scope(rows, left)))
    return left


def _and(call: Call, scope: Scope) -> DeviceColumn:
    first, second = call.arguments
    left = evaluate(first, scope)
    is_decided = ~left.values & validity(left, scope.backend)
    right = evaluate(second, scope.within(~is_decided))
    is_false = is_decided | (~right.values & validity(right, scope.backend))
    known = shared_validity([left, right])
    values = is_true(left) & is_true(right)
    return DeviceColumn(TRUTH, values, None if known is None else known | is_false)


def _or(call: Call, scope: Scope) -> DeviceColumn:
    first, second = call.arguments
    left = evaluate(first, scope)
    is_decided = is_true(left)
    right = evaluate(second, scope.within(~is_decided))
    values = is_decided | is_true(right)
    known = shared_validity([left, right])
    return DeviceColumn(TRUTH, values, None if known is None else known | values)


def _not(call: Call, values: list[DeviceColumn], scope: Scope) -> DeviceColumn:
    return DeviceColumn(TRUTH, ~values[0].values, values[0].valid)


def _case(call: Call, scope: Scope) -> DeviceColumn:
    """The value of the first branch whose condition is true; the last argument may be an else."""
    pairs = list(zip(call.arguments[0::2], call.arguments[1::2], strict=False))
    otherwise = call.arguments[-1] if len(call.arguments) % 2 else Literal(call.type)
    branches: list[Branch] = []
    rest = scope.xp.ones(scope.count, dtype=bool)
    for condition, value in pairs:
        hit = rest & is_true(evaluate(condition, scope.within(rest)))
        branches.append((hit, evaluate(value, scope.within(hit))))
        rest = rest & ~hit
    return _chosen(call, branches, evaluate(otherwise, scope.within(rest)), scope)


def _coalesce(call: Call, scope: Scope) -> DeviceColumn:
    *firsts, last = call.arguments
    branches: list[Branch] = []
    rest = scope.xp.ones(scope.count, dtype=bool)
    for expression in firsts:
        value = evaluate(expression, scope.within(rest))
        hit = rest & validity(value, scope.backend)
        branches.append((hit, value))
        rest = rest & ~hit
    return _chosen(call, branches, evaluate(last, scope.within(rest)), scope)


def _chosen(
    call: Call, branches: list[Branch], otherwise: DeviceColumn, scope: Scope
) -> DeviceColumn:
    """One column of the values of branches; no row takes two."""
    xp, backend = scope.xp, scope.backend
    *columns, last = shared([*(value for _, value in branches), otherwise], backend)
    pieces = [(hit, piece) for (hit, _), piece in zip(branches, columns, strict=True)]
    values = reduce(lambda rest, piece: xp.where(piece[0], piece[1].values, rest), pieces,
                    last.values)  # fmt: skip
    valid = None
    if shared_validity([*columns, last]) is not None:
        valid = reduce(
            lambda rest, piece: xp.where(piece[0], validity(piece[1], backend), rest),
            pieces,
            validity(last, backend),
        )
    return DeviceColumn(arrow_type(call.type), values, valid, last.dictionary)


def _in(call: Call, scope: Scope) -> DeviceColumn:
    value = evaluate(call.arguments[0], scope)
    if pa.types.is_string(value.type):
        return by_dictionary(call, value, scope.backend)
    return is_in(call, value, scope)


def _of_text(call: Call, scope: Scope) -> DeviceColumn:
    return by_dictionary(call, evaluate(call.arguments[0], scope), scope.backend)


def _is_null(call: Call, values: list[DeviceColumn], scope: Scope) -> DeviceColumn:
    is_valid = validity(values[0], scope.backend)
    return DeviceColumn(TRUTH, is_valid if call.name == "is_not_null" else ~is_valid)


def _is_nan(call: Call, values: list[DeviceColumn], scope: Scope) -> DeviceColumn:
    return DeviceColumn(TRUTH, is_true(DeviceColumn(
        TRUTH, scope.xp.isnan(values[0].values), values[0].valid
    )))  # fmt: skip


def _normalized(call: Call, values: list[DeviceColumn], scope: Scope) -> DeviceColumn:
    return normalized(values[0], scope.backend)


FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(("add", "subtract", "multiply", "negate", "abs"), arithmetic.plain),
    "divide": arithmetic.divide,
    "remainder": arithmetic.remainder,
    "floor": arithmetic.floor,
    "pane": arithmetic.pane,
    "cast": casts.cast,
    "unscaled": casts.unscaled,
    **dict.fromkeys(("equal", "less", "less_equal", "greater", "greater_equal"), compared),
    "equal_null_safe": compared,
    "not": _not,
    "is_null": _is_null,
    "is_not_null": _is_null,
    "is_nan": _is_nan,
    "normalized": _normalized,
}
BY_NEED: dict[str, Callable[[Call, Scope], DeviceColumn]] = {
    "and": _and,
    "or": _or,
    "case": _case,
    "coalesce": _coalesce,
    "in": _in,
    **dict.fromkeys(("starts_with", "ends_with", "contains", "length"), _of_text),
}
