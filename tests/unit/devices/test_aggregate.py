"""Partial aggregates are Spark's buffers: compared with sums made by hand, group by group."""

from __future__ import annotations

import math
from collections import defaultdict
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.devices.operators.aggregate import Aggregate, aggregate
from penstock.errors import BadCall
from support.columns import call, column, comparable, listed, literal, rows

KINDS = ("string", "bigint", "double", "decimal(12,2)", "boolean")
ROW = st.tuples(
    st.sampled_from(["a", "a", "b", "", None]),
    st.one_of(st.none(), st.integers(-(2**40), 2**40)),
    st.one_of(st.none(), st.sampled_from([0.5, -2.25, 8.0, math.nan, math.inf])),
    st.one_of(st.none(), st.integers(-(10**11), 10**11).map(lambda n: Decimal(n).scaleb(-2))),
    st.one_of(st.none(), st.booleans()),
)
IS_SET = column(4)


def of(function: str, place: int, kind: str, buffer: str, **more: Any) -> Aggregate:
    return Aggregate(function, (column(place),), kind, buffer, **more)


FUNCTIONS = (
    of("sum", 1, "bigint", "bigint", is_ansi=True),
    of("sum", 3, "decimal(12,2)", "decimal(22,2)"),
    of("mean", 2, "double", "double"),
    of("mean", 3, "decimal(12,2)", "decimal(22,2)"),
    of("count", 1, "bigint", "bigint"),
    Aggregate("count", (literal("int", 1),), "int", "bigint"),
    Aggregate("count", (literal("int", 1),), "int", "bigint", where=IS_SET),
    of("min", 2, "double", "double"),
    of("max", 2, "double", "double"),
    of("min", 3, "decimal(12,2)", "decimal(12,2)"),
    of("max", 4, "boolean", "boolean"),
    of("sum", 1, "bigint", "bigint", where=IS_SET, is_ansi=True),
)


def known(group: list[tuple[Any, ...]], place: int) -> list[Any]:
    return [row[place] for row in group if row[place] is not None]


def summed(values: list[Any]) -> Any:
    return sum(values[1:], start=values[0]) if values else None


def order(number: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(number) else (False, number)


def model(group: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The buffers of one group, in the order of FUNCTIONS."""
    whole, fractions, decimals, flags = (known(group, place) for place in (1, 2, 3, 4))
    flagged = [row for row in group if row[4]]
    return (
        summed(whole),
        *(summed(decimals) or Decimal(0), not decimals),
        *(comparable(float(sum(fractions))), len(fractions)),
        *(summed(decimals) or Decimal(0), len(decimals)),
        len(whole),
        len(group),
        len(flagged),
        comparable(min(fractions, key=order, default=None)),
        comparable(max(fractions, key=order, default=None)),
        min(decimals, default=None),
        max(flags, default=None),
        summed(known(flagged, 1)),
    )


@given(st.lists(ROW, max_size=40))
def test_every_group_has_the_buffers_that_spark_would_have_made(
    made: list[tuple[Any, ...]],
) -> None:
    groups: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for row in made:
        groups[row[0]].append(row)
    table = rows([(kind, [row[n] for row in made]) for n, kind in enumerate(KINDS)])
    answer = {row[0]: row[1:] for row in listed(aggregate((column(0),), FUNCTIONS, table))}
    assert answer == {key: model(group) for key, group in groups.items()}


def test_keys_that_are_no_numbers_or_null_are_groups_of_their_own() -> None:
    table = rows([("double", [math.nan, -0.0, None, 0.0, math.nan, None]), ("int", [1] * 6)])
    key = call("normalized", "double", column(0))
    answer = listed(aggregate((key,), (of("sum", 1, "int", "bigint"),), table))
    assert sorted(answer, key=repr) == [("NaN", 2), (0.0, 2), (None, 2)]


def test_a_sum_that_leaves_the_range_fails_and_one_that_comes_back_does_not() -> None:
    largest = 2**63 - 1
    total = of("sum", 1, "bigint", "bigint", is_ansi=True)

    def sums(*numbers: int | None) -> list[tuple[Any, ...]]:
        table = rows([("string", ["k"] * len(numbers)), ("bigint", list(numbers))])
        return listed(aggregate((column(0),), (total,), table))

    assert sums(largest, -largest, None, 5) == [("k", 5)]
    assert sums(-(2**63), 0) == [("k", -(2**63))]
    with pytest.raises(BadCall, match="sum of whole numbers is out of the range"):
        sums(largest, 1)
    wrapping = of("sum", 1, "bigint", "bigint")
    table = rows([("string", ["k", "k"]), ("bigint", [largest, 1])])
    assert listed(aggregate((column(0),), (wrapping,), table)) == [("k", -(2**63))]


def test_groups_without_a_function_are_the_keys_that_there_are() -> None:
    table = rows([("int", [1, 2, 1, None]), ("string", ["a", "a", "a", None])])
    answer = listed(aggregate((column(0), column(1)), (), table))
    assert sorted(answer, key=repr) == [(1, "a"), (2, "a"), (None, None)]


def test_no_rows_have_no_groups() -> None:
    answer = aggregate((column(0),), FUNCTIONS, rows([(kind, []) for kind in KINDS]))
    assert (answer.count, len(answer.columns)) == (0, 16)


def test_a_function_that_is_not_known_is_refused() -> None:
    with pytest.raises(BadCall, match="function first is left to Spark"):
        aggregate((column(0),), (of("first", 0, "int", "int"),), rows([("int", [1])]))
