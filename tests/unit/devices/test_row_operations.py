"""Expand, join, sort and top-k over whole rows, compared with plain Python."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.devices.operators.expand import expand
from penstock.devices.operators.expressions import Call
from penstock.devices.operators.join import join
from penstock.devices.operators.order import SortKey, sort, top
from support.columns import call, column, comparable, listed, literal, rows

KEYS = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.inf]))
PAIRS = st.lists(st.tuples(KEYS, st.integers(0, 9)), max_size=20)


def test_expansion_keeps_the_copies_of_a_row_together() -> None:
    table = rows([("int", [1, 2]), ("string", ["a", None])])
    projections = (
        (column(0), column(1)),
        (call("add", "int", column(0), literal("int", 10)), literal("string", None)),
    )
    assert listed(expand(projections, table)) == [(1, "a"), (11, None), (2, None), (12, None)]


@pytest.mark.parametrize(("values", "count"), [([], 3), ([2, 1], 0)])
def test_the_first_rows_may_be_none(values: list[int], count: int) -> None:
    answer = top((SortKey(column(0)),), count, rows([("int", values)]))
    assert (answer.count, listed(answer)) == (0, [])


@given(
    st.lists(st.one_of(st.none(), st.integers(-(10**6), 10**6)), max_size=20),
    *(st.integers(2, 7), st.integers(1, 50), st.integers(-60, 60)),
)
def test_starts_one_range_apart_are_those_of_every_window_of_a_time(
    times: list[int | None], count: int, slide_us: int, offset_us: int
) -> None:
    """What plans have for windows: a start by each of as many offsets as a row has windows."""
    range_us = count * slide_us
    projections = tuple(
        (Call("pane", "bigint", (column(0),), parameters=(range_us, offset_us + n * slide_us)),)
        for n in range(count)
    )
    starts = [start for (start,) in listed(expand(projections, rows([("bigint", times)])))]
    copies = [starts[place : place + count] for place in range(0, len(starts), count)]
    for time, made in zip(times, copies, strict=True):
        if time is None:
            assert made == [None] * count
        else:
            newest = time - (time - offset_us) % slide_us
            assert sorted(made) == [newest - n * slide_us for n in reversed(range(count))]


def sides(pairs: list[tuple[Any, int]]) -> list[tuple[str, list[Any]]]:
    return [("double", [key for key, _ in pairs]), ("int", [value for _, value in pairs])]


def key_of(key: float) -> Any:
    return "NaN" if math.isnan(key) else key + 0.0


@given(PAIRS, PAIRS)
def test_a_join_finds_equal_keys_and_no_nulls(left: Any, right: Any) -> None:
    answer = listed(join((column(0),), rows(sides(right)), (column(0),), rows(sides(left))))
    assert answer == [
        (comparable(a), x, comparable(b), y)
        for a, x in left
        for b, y in right
        if a is not None and b is not None and key_of(a) == key_of(b)
    ]


def test_a_left_join_keeps_rows_without_a_match_with_nulls() -> None:
    table = rows([("int", [1, 2, 2]), ("string", ["one", "two", "zwei"])])
    stream = rows([("int", [2, None, 3])])
    answer = listed(join((column(0),), table, (column(0),), stream, "left"))
    assert answer == [(2, 2, "two"), (2, 2, "zwei"), (None, None, None), (3, None, None)]


def place(key: float | None, *, is_descending: bool, is_null_first: bool) -> Any:
    if key is None:
        return (0 if is_null_first else 2, 0, 0.0)
    number, sign = (math.inf if math.isnan(key) else key), (-1 if is_descending else 1)
    return (1, sign * math.isnan(key), sign * number)


@given(PAIRS, st.booleans(), st.sampled_from([None, True, False]), st.integers(0, 25))
def test_rows_are_sorted_as_spark_sorts_them(
    pairs: Any, is_descending: bool, is_null_first: bool | None, count: int
) -> None:
    key = SortKey(column(0), is_descending, is_null_first)
    first = not is_descending if is_null_first is None else is_null_first
    expected = sorted(
        pairs, key=lambda p: place(p[0], is_descending=is_descending, is_null_first=first)
    )
    plain = [(comparable(k), v) for k, v in expected]
    # Minus zero is a key like zero, and goes back as it came.
    assert listed(sort((key,), rows(sides(pairs)))) == plain
    assert listed(top((key,), count, rows(sides(pairs)))) == plain[:count]


@pytest.mark.parametrize("count", [0, 2, 9])
def test_the_first_rows_of_two_keys(count: int) -> None:
    table = rows([("string", ["b", "a", "b", None]), ("int", [1, 2, 3, 4])])
    keys = (SortKey(column(0)), SortKey(column(1), is_descending=True))
    expected = [(None, 4), ("a", 2), ("b", 3), ("b", 1)]
    assert listed(top(keys, count, table)) == expected[:count]
