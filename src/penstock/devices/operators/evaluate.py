"""Evaluation of expressions over rows, a column at a time.

Spark evaluates a branch only for the rows that take it, and an argument only for those whose
arguments before it are known. So does this where one could fail; where none can, all are computed
for all rows, which is quicker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.devices.operators import arithmetic, casts, comparison
from penstock.devices.operators.expressions import (
    NULL_SAFE,
    Call,
    Column,
    Expression,
    Literal,
    argument_places,
    can_fail,
    conjuncts,
    scalar_of,
)
from penstock.devices.operators.rows import Numbers, Rows, Value, column_of, scattered
from penstock.devices.operators.types import arrow_type
from penstock.errors import BadCall

Function: TypeAlias = Callable[[Call, list[Value], int], Value]
ARITHMETIC: dict[str, Function] = {
    **dict.fromkeys(("add", "subtract", "multiply", "negate", "abs"), arithmetic.plain),
    "divide": arithmetic.divide,
    "remainder": arithmetic.remainder,
    "floor": arithmetic.floor,
    "pane": arithmetic.pane,
    "cast": casts.cast,
    "unscaled": casts.unscaled,
}
TESTS: dict[str, Callable[..., Value]] = {
    "not": pc.invert,
    "is_null": pc.is_null,
    "is_not_null": pc.is_valid,
    "is_nan": lambda value: pc.fill_null(pc.is_nan(value), False),
    "normalized": comparison.normalized,
    "length": pc.utf8_length,
    **comparison.COMPARISONS,
}


def evaluate(expression: Expression, rows: Rows) -> Value:
    """The values of an expression for all rows."""
    if isinstance(expression, Column):
        return rows.columns[expression.index]
    if isinstance(expression, Literal):
        return scalar_of(expression)
    if not rows.count:
        # A function of constants has a value without rows, too, and must not fail for none.
        return pa.nulls(0, arrow_type(expression.type))
    if expression.name in BY_NEED:
        return BY_NEED[expression.name](expression, rows)
    values = _arguments(expression, rows)
    if expression.name in ARITHMETIC:
        return ARITHMETIC[expression.name](expression, values, rows.count)
    if expression.name in TESTS:
        return TESTS[expression.name](*values)
    raise BadCall(f"function {expression.name} is left to Spark", code="unknown_function")


def _arguments(call: Call, rows: Rows) -> list[Value]:
    """The values of a call's arguments; one that could fail is null where one before it is."""
    values: dict[int, Value] = {}
    for place in argument_places(call):
        argument = call.arguments[place]
        if not values or call.name in NULL_SAFE or not can_fail(argument):
            values[place] = evaluate(argument, rows)
            continue
        known = [np.asarray(column_of(each, rows.count).is_valid()) for each in values.values()]
        is_needed = np.logical_and.reduce(known)
        needing, done = np.flatnonzero(is_needed), np.flatnonzero(~is_needed)
        needed = column(argument, rows.taken(needing))
        values[place] = scattered([(needing, needed), (done, pa.nulls(len(done), needed.type))])
    return [values[place] for place in range(len(values))]


def column(expression: Expression, rows: Rows) -> pa.Array:
    """The same as a column, also where all rows have one value."""
    return column_of(evaluate(expression, rows), rows.count)


def mask(condition: Expression, rows: Rows) -> pa.Array:
    """The mask of a condition: true where it is, false for false and null."""
    return column(condition, rows).fill_null(False)


def rows_where(condition: Expression, rows: Rows, needed: Collection[int] | None = None) -> Rows:
    """The rows for which a condition is true, as Spark's filter keeps them: conjuncts are applied
    in turn, and one that could fail only to the rows that are left. An `and` elsewhere has three
    truth values, and needs its right side where the left one is null, too. Only the columns that
    are needed after it are taken; None: all."""
    waiting: list[Expression] = []
    for conjunct in conjuncts(condition):
        if waiting and can_fail(conjunct):
            rows = _rows_of_all(waiting, rows)
            waiting = []
        waiting.append(conjunct)
    return _rows_of_all(waiting, rows, needed)


def _rows_of_all(
    conditions: list[Expression], rows: Rows, needed: Collection[int] | None = None
) -> Rows:
    """The rows for which all of these are true; only the first may fail."""
    both = reduce(lambda left, right: Call("and", "boolean", (left, right)), conditions)
    return rows.filtered(mask(both, rows), needed)


def _and(call: Call, rows: Rows) -> Value:
    left, right = _both(call, rows, stops_at=False)
    return pc.and_kleene(left, right)


def _or(call: Call, rows: Rows) -> Value:
    left, right = _both(call, rows, stops_at=True)
    return pc.or_kleene(left, right)


def _both(call: Call, rows: Rows, *, stops_at: bool) -> tuple[Value, Value]:
    """Both sides; the right one is null where the left one has decided, if it could fail there."""
    first, second = call.arguments
    left = evaluate(first, rows)
    if not can_fail(second):
        return left, evaluate(second, rows)
    decided = pc.equal(column_of(left, rows.count), pa.scalar(stops_at)).fill_null(False)
    needing, done = np.flatnonzero(~np.asarray(decided)), np.flatnonzero(np.asarray(decided))
    right = column(second, rows.taken(needing))
    return left, scattered([(needing, right), (done, pa.nulls(len(done), pa.bool_()))])


def _case(call: Call, rows: Rows) -> Value:
    """The value of the first branch whose condition is true; the last argument may be an else."""
    pairs = list(zip(call.arguments[0::2], call.arguments[1::2], strict=False))
    otherwise = call.arguments[-1] if len(call.arguments) % 2 else Literal(call.type)
    if any(can_fail(part) for part in call.arguments[1:]):
        return _case_by_need(pairs, otherwise, rows)
    last = evaluate(otherwise, rows)
    branches = [(pc.fill_null(evaluate(c, rows), False), evaluate(v, rows)) for c, v in pairs]
    return reduce(lambda rest, branch: pc.if_else(*branch, rest), reversed(branches), last)


def _case_by_need(
    pairs: list[tuple[Expression, Expression]], otherwise: Expression, rows: Rows
) -> pa.Array:
    pieces: list[tuple[Numbers, pa.Array]] = []
    places = np.arange(rows.count)
    for condition, value in [*pairs, (Literal("boolean", True), otherwise)]:
        left = rows.taken(places)
        hit = np.asarray(mask(condition, left))
        chosen = left.taken(np.flatnonzero(hit))
        pieces.append((places[hit], column(value, chosen)))
        places = places[~hit]
    return scattered(pieces)


def _coalesce(call: Call, rows: Rows) -> Value:
    if not any(map(can_fail, call.arguments[1:])):
        return pc.coalesce(*(evaluate(argument, rows) for argument in call.arguments))
    *firsts, last = call.arguments
    tested = [(Call("is_not_null", "boolean", (first,)), first) for first in firsts]
    return _case_by_need([*tested], last, rows)


def _in(call: Call, rows: Rows) -> Value:
    value, *members = call.arguments
    constants = [scalar_of(member) for member in members if isinstance(member, Literal)]
    return comparison.is_in(evaluate(value, rows), constants)


def _starts_with(call: Call, rows: Rows) -> Value:
    return _text_test(pc.starts_with, call, rows)


def _text_test(test: Callable[..., Value], call: Call, rows: Rows) -> Value:
    value, pattern = call.arguments
    text = pattern.value if isinstance(pattern, Literal) else None
    if text is None:
        return pa.scalar(None, arrow_type(call.type))
    return test(evaluate(value, rows), str(text))


BY_NEED: dict[str, Callable[[Call, Rows], Value]] = {
    "and": _and,
    "or": _or,
    "case": _case,
    "coalesce": _coalesce,
    "in": _in,
    "starts_with": _starts_with,
    "ends_with": lambda call, rows: _text_test(pc.ends_with, call, rows),
    "contains": lambda call, rows: _text_test(pc.match_substring, call, rows),
}
