"""Expressions give Spark's values: null, not a number, minus zero, overflow, decimals, branches."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.devices.operators.evaluate import column as values_of
from penstock.devices.operators.evaluate import rows_where
from penstock.devices.operators.expressions import Call, Expression
from penstock.errors import BadCall
from support.columns import call, column, comparable, listed, literal, rows

DOUBLES = st.one_of(
    st.none(), st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -2.25])
)
FLAGS = st.sampled_from([True, False, None])
INT64_MAX = 2**63 - 1
Columns: TypeAlias = list[tuple[str, list[Any]]]


def evaluated(expression: Expression, *columns: tuple[str, list[Any]]) -> list[Any]:
    return [comparable(v) for v in values_of(expression, rows(columns)).to_pylist()]


def ordinal(number: float) -> tuple[bool, float]:
    """The place of a double in Spark's order: not a number is last and equals itself."""
    return (True, 0.0) if math.isnan(number) else (False, number)


COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "equal": lambda a, b: a == b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}


@given(st.lists(st.tuples(DOUBLES, DOUBLES), min_size=1, max_size=30))
def test_doubles_are_compared_in_sparks_order(
    pairs: list[tuple[float | None, float | None]],
) -> None:
    left, right = (list(side) for side in zip(*pairs, strict=True))
    for name, model in COMPARED.items():
        expected = [
            None if a is None or b is None else model(ordinal(a), ordinal(b)) for a, b in pairs
        ]
        compared = call(name, "boolean", column(0), column(1))
        assert evaluated(compared, ("double", left), ("double", right)) == expected
    same = call("equal_null_safe", "boolean", column(0), column(1))
    assert evaluated(same, ("double", left), ("double", right)) == [
        (a is None) == (b is None) and (a is None or b is None or ordinal(a) == ordinal(b))
        for a, b in pairs
    ]


@given(st.lists(st.tuples(FLAGS, FLAGS), min_size=1, max_size=20))
def test_and_and_or_know_a_third_value(pairs: list[tuple[bool | None, bool | None]]) -> None:
    def both(a: bool | None, b: bool | None) -> bool | None:
        return False if a is False or b is False else None if None in (a, b) else True

    def either(a: bool | None, b: bool | None) -> bool | None:
        return True if a is True or b is True else None if None in (a, b) else False

    columns = [("boolean", list(side)) for side in zip(*pairs, strict=True)]
    for name, model in (("and", both), ("or", either)):
        joined = call(name, "boolean", column(0), column(1))
        assert evaluated(joined, *columns) == [model(a, b) for a, b in pairs]


ROUND = st.integers(-(10**6), 10**6).map(lambda n: n / 10**4)


@given(st.lists(st.one_of(st.none(), st.floats(-1e4, 1e4), ROUND)), st.integers(0, 6))
def test_a_double_becomes_the_decimal_nearest_to_its_text(
    numbers: list[float | None], scale: int
) -> None:
    cast = call("cast", f"decimal(12,{scale})", column(0))
    unit = Decimal(1).scaleb(-scale)
    assert evaluated(cast, ("double", numbers)) == [
        None if n is None else Decimal(repr(n)).quantize(unit, ROUND_HALF_UP) for n in numbers
    ]


def test_a_tie_in_the_text_of_a_double_is_rounded_up_though_the_double_is_below_it() -> None:
    # 1.0000005 and 2.675 are below these texts in binary.
    cast = call("cast", "decimal(8,6)", column(0))
    assert evaluated(cast, ("double", [1.0000005, -1.0000005])) == [
        Decimal("1.000001"), Decimal("-1.000001"),
    ]  # fmt: skip
    cents = call("cast", "decimal(8,2)", column(0))
    assert evaluated(cents, ("double", [2.675])) == [Decimal("2.68")]


def test_a_float_becomes_a_decimal_by_the_text_of_the_double_that_it_is() -> None:
    # As a float 0.35 is 0.3499999940395355, which a decimal of one digit shows.
    cast = call("cast", "decimal(8,1)", column(0))
    assert evaluated(cast, ("float", [0.35, 0.25, None])) == [Decimal("0.3"), Decimal("0.3"), None]


def test_what_is_no_number_or_too_large_for_a_decimal_is_null_or_fails() -> None:
    cast = call("cast", "decimal(4,2)", column(0), is_ansi=False)
    numbers = [math.nan, math.inf, 100.0, 99.99, 99.995, 1e300, None]
    nulls = [None, None, None, Decimal("99.99"), None, None, None]
    assert evaluated(cast, ("double", numbers)) == nulls
    with pytest.raises(BadCall, match="out of the range"):
        evaluated(call("cast", "decimal(4,2)", column(0)), ("double", [99.995]))


@given(st.lists(st.one_of(st.none(), st.integers(-(10**17), 10**17))))
def test_a_decimal_is_known_by_the_number_of_its_units(units: list[int | None]) -> None:
    decimals = [None if u is None else Decimal(u).scaleb(-3) for u in units]
    unscaled = call("unscaled", "bigint", column(0))
    assert evaluated(unscaled, ("decimal(18,3)", decimals)) == units


def test_overflow_fails_in_ansi_mode_and_wraps_in_the_old_one() -> None:
    add = call("add", "bigint", column(0), literal("bigint", 1))
    with pytest.raises(BadCall, match="add is out of the range"):
        evaluated(add, ("bigint", [INT64_MAX]))
    wrapping = call("add", "bigint", column(0), literal("bigint", 1), is_ansi=False)
    assert evaluated(wrapping, ("bigint", [INT64_MAX, None, 1])) == [-(2**63), None, 2]
    narrow = call("cast", "int", column(0))
    with pytest.raises(BadCall, match="cast is out of the range"):
        evaluated(narrow, ("bigint", [2**31]))
    quiet = call("cast", "int", column(0), is_ansi=False)
    assert evaluated(quiet, ("bigint", [2**31])) == [-(2**31)]


@given(
    st.lists(st.tuples(st.integers(-100, 100), st.integers(-7, 7).filter(bool)), min_size=1),
)
def test_a_remainder_has_the_sign_of_the_dividend(pairs: list[tuple[int, int]]) -> None:
    columns = [("int", list(side)) for side in zip(*pairs, strict=True)]
    rest = call("remainder", "int", column(0), column(1))
    assert evaluated(rest, *columns) == [int(math.fmod(a, b)) for a, b in pairs]


def test_division_by_zero_fails_or_is_null_and_nulls_never_fail() -> None:
    columns: Columns = [("double", [1.0, None, 3.0]), ("double", [2.0, 0.0, None])]
    quotient = call("divide", "double", column(0), column(1))
    assert evaluated(quotient, *columns) == [0.5, None, None]
    with pytest.raises(BadCall, match="divides by zero"):
        evaluated(quotient, ("double", [1.0]), ("double", [0.0]))
    quiet = call("divide", "double", column(0), column(1), is_ansi=False)
    assert evaluated(quiet, ("double", [1.0, 1.0]), ("double", [0.0, 4.0])) == [None, 0.25]


def guarded(name: str, kind: str, *arguments: Expression) -> Call:
    return call(name, kind, *arguments)


def test_a_branch_that_would_fail_is_not_evaluated_for_rows_that_do_not_take_it() -> None:
    columns: Columns = [("bigint", [6, 7, None]), ("bigint", [3, 0, 2])]
    is_zero = call("equal", "boolean", column(1), literal("bigint", 0))
    rest = call("remainder", "bigint", column(0), column(1))
    chosen = guarded("case", "bigint", is_zero, literal("bigint", -1), rest)
    assert evaluated(chosen, *columns) == [0, -1, None]
    no_zero = call("not", "boolean", is_zero)
    even = call("equal", "boolean", rest, literal("bigint", 0))
    assert evaluated(guarded("and", "boolean", no_zero, even), *columns) == [True, False, None]
    assert evaluated(guarded("or", "boolean", is_zero, even), *columns) == [True, True, None]
    first = call("case", "bigint", is_zero, literal("bigint", 5))
    assert evaluated(guarded("coalesce", "bigint", first, rest), *columns) == [0, 5, None]


@pytest.mark.parametrize("name", ["add", "less"])
def test_an_argument_that_would_fail_is_not_evaluated_where_the_one_before_is_null(
    name: str,
) -> None:
    table = rows([("bigint", [None, 4]), ("bigint", [0, 2])])
    rest = call("remainder", "bigint", column(1), column(1))
    kind = "boolean" if name == "less" else "bigint"
    known = {"add": [None, 4], "less": [None, False]}[name]
    assert values_of(call(name, kind, column(0), rest), table).to_pylist() == known
    with pytest.raises(BadCall, match="divides by zero"):
        values_of(call(name, kind, rest, column(0)), table)
    with pytest.raises(BadCall, match="divides by zero"):
        values_of(call("equal_null_safe", "boolean", column(0), rest), table)


def test_a_failing_constant_fails_only_where_a_row_takes_its_branch() -> None:
    least = call("abs", "bigint", literal("bigint", -(2**63)))
    chosen = call("case", "bigint", column(0), column(1), least)
    assert evaluated(chosen, ("boolean", [True]), ("bigint", [7])) == [7]
    with pytest.raises(BadCall, match="out of the range"):
        evaluated(chosen, ("boolean", [True, None]), ("bigint", [7, 7]))


def test_the_divisor_is_evaluated_before_what_is_divided() -> None:
    table = rows([("bigint", [2**63 - 1, 4]), ("bigint", [None, 3])])
    more = call("add", "bigint", column(0), literal("bigint", 1))
    assert values_of(call("remainder", "bigint", more, column(1)), table).to_pylist() == [None, 2]
    with pytest.raises(BadCall, match="out of the range"):
        values_of(call("remainder", "bigint", column(1), more), table)


def test_a_filter_drops_a_row_at_the_first_conjunct_that_is_not_true() -> None:
    is_small = call(
        "greater", "boolean",
        call("divide", "double", literal("double", "10"), column(1)), literal("double", "1"),
    )  # fmt: skip
    both = call("and", "boolean", column(0), is_small)
    table = rows([("boolean", [None, False, True]), ("double", [0.0, 0.0, 2.0])])
    assert listed(rows_where(both, table)) == [(True, 2.0)]
    known = call("and", "boolean", call("and", "boolean", column(0), column(0)), both)
    assert listed(rows_where(known, table)) == [(True, 2.0)]
    # Spark looks for nulls in columns before it evaluates anything else.
    late = call("and", "boolean", is_small, call("is_not_null", "boolean", column(0)))
    none = rows([("boolean", [None, True]), ("double", [0.0, 2.0])])
    assert listed(rows_where(late, none)) == [(True, 2.0)]
    # Where `and` has three truth values, a right side is evaluated beside a null.
    with pytest.raises(BadCall, match="zero"):
        evaluated(both, ("boolean", [None]), ("double", [0.0]))
    with pytest.raises(BadCall, match="zero"):
        rows_where(both, rows([("boolean", [True]), ("double", [0.0])]))


def test_a_case_takes_the_first_branch_that_is_true() -> None:
    case = call(
        "case", "string",
        call("less", "boolean", column(0), literal("int", 2)), literal("string", "low"),
        call("less", "boolean", column(0), literal("int", 4)), literal("string", "mid"),
    )  # fmt: skip
    assert evaluated(case, ("int", [1, 3, 9, None])) == ["low", "mid", None, None]


def test_a_member_is_unknown_where_a_null_stands_on_either_side() -> None:
    def of(*members: int | None) -> Call:
        return call("in", "boolean", column(0), *(literal("int", m) for m in members))

    assert evaluated(of(1, 2), ("int", [1, 3, None])) == [True, False, None]
    assert evaluated(of(1, None), ("int", [1, 3, None])) == [True, None, None]


def test_keys_that_are_fractions_have_one_zero_and_one_nan() -> None:
    normalized = call("normalized", "double", column(0))
    answer = evaluated(normalized, ("double", [-0.0, math.nan, None, 2.0]))
    assert answer == [0.0, "NaN", None, 2.0]
    assert math.copysign(1, answer[0]) == 1


def test_floor_is_the_nearest_bigint() -> None:
    floor = call("floor", "bigint", column(0), is_ansi=False)
    numbers = [1.5, -1.5, 1e300, -1e300, math.nan, None]
    assert evaluated(floor, ("double", numbers)) == [1, -2, INT64_MAX, -(2**63), 0, None]
    with pytest.raises(BadCall, match="floor is out of the range"):
        evaluated(call("floor", "bigint", column(0)), ("double", [1e300]))


@given(st.lists(st.one_of(st.none(), st.integers(-(10**13), 10**13))))
def test_a_pane_starts_at_the_last_multiple_of_the_slide(times: list[int | None]) -> None:
    slide, offset = 5_000_000, -3_000_000
    pane = Call("pane", "bigint", (column(0),), parameters=(slide, offset))
    assert evaluated(pane, ("bigint", times)) == [
        None if t is None else (t - offset) // slide * slide + offset for t in times
    ]


def test_texts_are_tested_and_measured() -> None:
    texts = ["abc", "é", None]
    for name, expected in (("starts_with", [True, False, None]), ("contains", [True, False, None])):
        test = call(name, "boolean", column(0), literal("string", "ab"))
        assert evaluated(test, ("string", texts)) == expected
    assert evaluated(call("length", "int", column(0)), ("string", texts)) == [3, 1, None]


def test_what_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(BadCall, match="function soundex is left to Spark"):
        evaluated(call("soundex", "string", column(0)), ("string", ["a"]))
    with pytest.raises(BadCall, match="type interval is left to Spark"):
        evaluated(literal("interval", 1), ("int", [1]))
