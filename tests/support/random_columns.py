"""Random columns and expressions of every type that pipelines have, for comparisons of devices."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cache
from typing import Any, TypeAlias

from hypothesis import strategies as st

from penstock.devices.operators.expressions import Call, Column, Expression, Literal
from penstock.devices.operators.rows import Rows
from support.columns import rows

KINDS = (
    *("boolean", "tinyint", "int", "bigint", "float", "double"),
    *("decimal(12,2)", "decimal(18,4)", "string", "date", "timestamp", "timestamp_ntz"),
)
PLACES = {kind: place for place, kind in enumerate(KINDS)}
EDGES = {"tinyint": 7, "int": 31, "bigint": 63}
# Sums of these are exact in any order.
FRACTIONS = [0.0, -0.0, 1.5, -2.25, 1024.0, math.nan, math.inf, -math.inf]
TEXTS = ["", "a", "ab", "b", "é", "Zürich", "a\u0000"]
DAY_US = 86_400_000_000
Values: TypeAlias = "st.SearchStrategy[Any]"


def _whole(bits: int) -> Values:
    edge = 2 ** (bits)
    return st.one_of(st.integers(-9, 9), st.sampled_from([-edge, edge - 1, 1 - edge]))


def _decimal(digits: int, scale: int) -> Values:
    largest = 10**digits - 1
    numbers = st.one_of(st.integers(-500, 500), st.sampled_from([largest, -largest]))
    return numbers.map(lambda number: Decimal(number).scaleb(-scale))


VALUES: dict[str, Values] = {
    "boolean": st.booleans(),
    **{kind: _whole(bits) for kind, bits in EDGES.items()},
    "float": st.sampled_from(FRACTIONS),
    "double": st.sampled_from(FRACTIONS),
    "decimal(12,2)": _decimal(12, 2),
    "decimal(18,4)": _decimal(18, 4),
    "string": st.sampled_from(TEXTS),
    "date": st.integers(-40_000, 40_000),
    "timestamp": st.integers(-DAY_US, 2_000 * DAY_US),
    "timestamp_ntz": st.integers(-DAY_US, 2_000 * DAY_US),
}
ROW = st.tuples(*(st.one_of(st.none(), VALUES[kind]) for kind in KINDS))


def tables(max_size: int = 12) -> st.SearchStrategy[Rows]:
    """Rows with a column of each kind, in the order of KINDS."""
    return st.builds(_table, st.lists(ROW, max_size=max_size), st.integers(0, 3))


def _table(made: list[tuple[Any, ...]], cut: int) -> Rows:
    """The rows but for the first few: columns that begin in the middle of their buffers."""
    whole = rows([(kind, [row[place] for row in made]) for place, kind in enumerate(KINDS)])
    start = min(cut, whole.count)
    return Rows(tuple(column[start:] for column in whole.columns), whole.count - start)


def literals(kind: str) -> st.SearchStrategy[Literal]:
    def made(value: Any) -> Literal:
        is_text = value is not None and kind in ("float", "double")
        is_decimal = isinstance(value, Decimal)
        return Literal(kind, str(value) if is_text or is_decimal else value)

    return st.one_of(st.none(), VALUES[kind]).map(made)


def column(kind: str) -> st.SearchStrategy[Expression]:
    return st.just(Column(PLACES[kind]))


def call(name: str, kind: str, *arguments: Values) -> Values:
    return st.builds(
        lambda parts, is_ansi: Call(name, kind, parts, is_ansi=is_ansi),
        st.tuples(*arguments),
        st.booleans(),
    )


@cache
def expressions(kind: str, depth: int = 2) -> st.SearchStrategy[Any]:
    """Expressions of a type, of functions that every device has. None has constants alone, which
    Spark computes before."""
    if not depth:
        return column(kind)
    below = depth - 1
    condition, same = conditions(below), expressions(kind, below)
    other = st.one_of(same, literals(kind))
    choices = [
        column(kind),
        call("case", kind, condition, other, other),
        call("case", kind, condition, other),
        call("coalesce", kind, same, other),
    ]
    if kind in EDGES or kind in ("float", "double"):
        choices += [call(name, kind, same, other) for name in ("add", "subtract", "multiply")]
        choices += [call(name, kind, same) for name in ("negate", "abs")]
    if kind in EDGES:
        choices.append(call("remainder", kind, same, other))
    choices += special(kind, below)
    return st.one_of(choices)


def special(kind: str, below: int) -> list[Values]:
    """Functions with a result of one type alone."""
    if kind == "boolean":
        return [conditions(below)]
    if kind == "int":
        return [
            call("cast", kind, expressions("bigint", below)),
            call("length", kind, expressions("string", below)),
        ]
    if kind == "bigint":
        return [
            call("cast", kind, expressions("tinyint", below)),
            call("floor", kind, expressions("double", below)),
            call("unscaled", kind, expressions("decimal(12,2)", below)),
        ]
    if kind == "double":
        doubles = expressions(kind, below)
        return [
            call("divide", kind, doubles, st.one_of(doubles, literals(kind))),
            call("cast", kind, expressions("bigint", below)),
            call("cast", kind, expressions("float", below)),
            call("normalized", kind, doubles),
        ]
    if kind == "decimal(18,4)":
        return [call("cast", kind, expressions("double", below))]
    return []


@cache
def conditions(depth: int) -> Values:
    """Expressions with a truth value."""
    if not depth:
        return column("boolean")
    below = depth - 1
    truth = expressions("boolean", below)
    tested = [
        call("and", "boolean", truth, truth),
        call("or", "boolean", truth, truth),
        call("not", "boolean", truth),
        call("is_nan", "boolean", expressions("double", below)),
    ]
    for kind in KINDS:
        value = expressions(kind, below)
        other = st.one_of(value, literals(kind))
        tested += [
            call(name, "boolean", value, other)
            for name in ("equal", "equal_null_safe", "less", "less_equal", "greater")
        ]
        tested += [call(name, "boolean", value) for name in ("is_null", "is_not_null")]
        if kind not in ("float", "double"):
            member = literals(kind)
            tested.append(call("in", "boolean", value, member, member))
    pattern = st.sampled_from(TEXTS).map(lambda text: Literal("string", text))
    text = expressions("string", below)
    tested += [
        call(name, "boolean", text, pattern) for name in ("starts_with", "ends_with", "contains")
    ]
    return st.one_of(tested)
