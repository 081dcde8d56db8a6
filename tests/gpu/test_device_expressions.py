"""Expressions on a device have the values that they have on the CPU, and fail where they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.devices.gpu.execution import Gpu, execute
from penstock.devices.operators.expressions import Call, Expression
from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import Filter, Pipeline, Project
from penstock.devices.pipeline import execute as execute_on_cpu
from penstock.errors import BadCall
from support.columns import call, column, comparable, listed, literal, rows
from support.random_columns import KINDS, PLACES, conditions, expressions, tables

EXAMPLES = 150


def outcome(run: Callable[[], Rows]) -> Any:
    """The rows of a run, or the code that it fails with."""
    try:
        return listed(run())
    except BadCall as error:
        return error.code


def assert_same(pipeline: Pipeline, table: Rows, gpu: Gpu) -> None:
    def on_device() -> Rows:
        made, report = execute(pipeline, table, gpu=gpu)
        assert report.step_devices == ()
        return made

    assert outcome(on_device) == outcome(lambda: execute_on_cpu(pipeline, table)[0])


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_an_expression_has_the_values_of_the_cpu(gpu: Gpu, data: st.DataObject) -> None:
    table = data.draw(tables())
    kind = data.draw(st.sampled_from(KINDS))
    assert_same(Pipeline((Project((data.draw(expressions(kind)),)),)), table, gpu)


@settings(max_examples=EXAMPLES)
@given(table=tables(), condition=conditions(2))
def test_a_filter_keeps_the_rows_that_it_keeps_on_the_cpu(
    gpu: Gpu, table: Rows, condition: Expression
) -> None:
    assert_same(Pipeline((Filter(condition),)), table, gpu)


@given(table=tables())
def test_columns_come_back_as_they_went(gpu: Gpu, table: Rows) -> None:
    every = Pipeline((Project(tuple(column(place) for place in range(len(KINDS)))),))
    made, _ = execute(every, table, gpu=gpu)
    assert [each.type for each in made.columns] == [each.type for each in table.columns]
    assert listed(made) == listed(table)


@given(st.lists(st.one_of(st.none(), st.integers(-(10**13), 10**13)), max_size=20))
def test_a_pane_starts_where_it_does_on_the_cpu(gpu: Gpu, times: list[int | None]) -> None:
    pane = Call("pane", "timestamp", (column(0),), parameters=(5_000_000, -3_000_000))
    assert_same(Pipeline((Project((pane,)),)), rows([("timestamp", times)]), gpu)


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e4, 1e4), st.integers(-(10**6), 10**6).map(
        lambda number: number / 10**4
    )), max_size=20),
    st.integers(0, 6),
)  # fmt: skip
def test_a_double_becomes_the_decimal_nearest_to_its_text(
    gpu: Gpu, numbers: list[float | None], scale: int
) -> None:
    cast = call("cast", f"decimal(12,{scale})", column(0))
    assert_same(Pipeline((Project((cast,)),)), rows([("double", numbers)]), gpu)


def decimal(place: str) -> Expression:
    return column(PLACES[place])


@given(table=tables())
def test_decimals_have_the_digits_of_the_cpu(gpu: Gpu, table: Rows) -> None:
    cents, small = decimal("decimal(12,2)"), call("cast", "decimal(3,0)", column(1))
    sums = [call(name, "decimal(13,2)", cents, small) for name in ("add", "subtract")]
    product = call("multiply", "decimal(16,2)", cents, small)
    wider = call("cast", "decimal(17,4)", cents)
    turned = [call(name, "decimal(12,2)", cents) for name in ("negate", "abs")]
    assert_same(Pipeline((Project((*sums, product, wider, *turned)),)), table, gpu)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("add", (2**63 - 1, 1)), ("subtract", (-(2**63), 1)), ("multiply", (2**62, 2)),
     ("multiply", (-(2**63), -1)), ("multiply", (-1, -(2**63))), ("multiply", (2**32, -(2**32)))],
)  # fmt: skip
def test_an_overflow_fails_only_in_rows_that_need_the_value(
    gpu: Gpu, name: str, numbers: tuple[int, int]
) -> None:
    table = rows([("bigint", [numbers[0], 3]), ("bigint", [numbers[1], 4])])
    result = call(name, "bigint", column(0), column(1))
    with pytest.raises(BadCall, match=f"{name} is out of the range"):
        execute(Pipeline((Project((result,)),)), table, gpu=gpu)
    is_small = call("equal", "boolean", column(0), literal("bigint", 3))
    chosen = call("case", "bigint", is_small, result, literal("bigint", 0))
    made, _ = execute(Pipeline((Project((chosen,)),)), table, gpu=gpu)
    assert made.columns[0].to_pylist()[0] == 0
    wrapped = call(name, "bigint", column(0), column(1), is_ansi=False)
    assert_same(Pipeline((Project((wrapped,)),)), table, gpu)


def test_a_filter_drops_a_row_at_the_first_conjunct_that_is_not_true(gpu: Gpu) -> None:
    rest = call("remainder", "bigint", literal("bigint", 10), column(1))
    is_even = call("equal", "boolean", rest, literal("bigint", 0))
    is_known = call("greater", "boolean", column(0), literal("bigint", 1))
    table = rows([("bigint", [None, 0, 7]), ("bigint", [0, 0, 2])])
    in_turn = Pipeline((Filter(call("and", "boolean", is_known, is_even)),))
    made, _ = execute(in_turn, table, gpu=gpu)
    assert listed(made) == [(7, 2)]
    assert_same(in_turn, table, gpu)
    assert_same(Pipeline((Filter(call("and", "boolean", is_even, is_known)),)), table, gpu)


def test_an_argument_is_needed_only_where_those_that_come_first_are_known(gpu: Gpu) -> None:
    table = rows([("bigint", [None, 4]), ("bigint", [0, 2])])
    rest = call("remainder", "bigint", column(1), column(1))
    after, before = (
        Pipeline((Project((call("add", "bigint", *both),)),))
        for both in ((column(0), rest), (rest, column(0)))
    )
    divided = Pipeline((Project((call("remainder", "bigint", rest, column(0)),)),))
    made, _ = execute(after, table, gpu=gpu)
    assert made.columns[0].to_pylist() == [None, 4]
    for pipeline in (after, before, divided):
        assert_same(pipeline, table, gpu)


def test_a_remainder_of_the_smallest_number_by_minus_one_is_nothing(gpu: Gpu) -> None:
    table = rows([("bigint", [-(2**63), 7, -7]), ("bigint", [-1, -2, 2])])
    rest = call("remainder", "bigint", column(0), column(1))
    made, _ = execute(Pipeline((Project((rest,)),)), table, gpu=gpu)
    assert [comparable(number) for number in made.columns[0].to_pylist()] == [0, 1, -1]
