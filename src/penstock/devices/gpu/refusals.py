"""Steps that a GPU does not take, told before a run from the types of columns: they run on the CPU.

A sentence ends "…, which stays on the CPU".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import pyarrow as pa

from penstock.devices.gpu.aggregate import MAKERS
from penstock.devices.gpu.casts import is_cast_taken
from penstock.devices.gpu.columns import UNSCALED_DIGITS_MAX
from penstock.devices.gpu.evaluate import BY_NEED, FUNCTIONS
from penstock.devices.operators.aggregate import Aggregate
from penstock.devices.operators.expressions import Call, Column, Expression, Literal
from penstock.devices.operators.types import arrow_type
from penstock.devices.pipeline import (
    EventTime,
    Expand,
    Filter,
    Grouped,
    Joined,
    Parse,
    Pipeline,
    Project,
    Sorted,
    Step,
    static_table,
)
from penstock.devices.result_columns import buffer_types

TEXT_FUNCTIONS = frozenset({"starts_with", "ends_with", "contains", "length"})
COMPARISONS = frozenset(
    {"equal", "equal_null_safe", "less", "less_equal", "greater", "greater_equal"}
)
DECIMAL_FUNCTIONS = frozenset({"add", "subtract", "multiply", "negate", "abs"})
KEYS_MAX = 62
"""Keys of a group: each has a bit for its nulls."""
PARSING = "parsing of text"


def refusals(pipeline: Pipeline, types: Sequence[pa.DataType]) -> list[str | None]:
    """The thing in each step of a pipeline that a GPU does not take, for columns of these types."""
    sentences = []
    for step in pipeline.steps:
        sentences.append(refusal(step, types))
        types = types_after(step, types)
    return sentences


def refusal(step: Step, types: Sequence[pa.DataType]) -> str | None:
    """The thing in a step over columns of these types that a GPU does not take; None if it takes
    the step. Columns that only pass through count, because they would have to be moved."""
    return next(_objections(step, types), None)


def types_after(step: Step, types: Sequence[pa.DataType]) -> list[pa.DataType]:
    """The types of the columns after a step."""
    match step:
        case Project():
            return [type_of(each, types) for each in step.columns]
        case Expand():
            return [type_of(each, types) for each in step.projections[0]]
        case Parse():
            return [*types, *(arrow_type(kind) for _, kind in step.fields)]
        case Joined():
            return [*types, *(each.type for each in static_table(step.table).columns)]
        case Grouped():
            keys = [type_of(key, types) for key in step.keys]
            buffers = (kind for each in step.aggregates for kind in buffer_types(each))
            return [*keys, *map(arrow_type, buffers)]
        case Filter() | EventTime() | Sorted():
            return list(types)


def type_of(expression: Expression, types: Sequence[pa.DataType]) -> pa.DataType:
    """The type of an expression over columns of these types."""
    if isinstance(expression, Column):
        return types[expression.index]
    return arrow_type(expression.type)


def _objections(step: Step, types: Sequence[pa.DataType]) -> Iterator[str]:
    if isinstance(step, Parse):
        yield PARSING
        return
    for kind in types:
        yield from _type_objections(kind)
    for expression in _expressions(step):
        yield from _expression_objections(expression, types)
    if isinstance(step, Joined):
        yield from _join_objections(step, types)
    if isinstance(step, Grouped):
        if len(step.keys) > KEYS_MAX:
            yield f"groups by more than {KEYS_MAX} keys"
        for function in step.aggregates:
            if function.function not in MAKERS:
                yield f"the function {function.function}"


def _expressions(step: Step) -> Iterator[Expression]:
    match step:
        case Filter():
            yield step.condition
        case Project():
            yield from step.columns
        case Expand():
            yield from chain.from_iterable(step.projections)
        case EventTime():
            yield step.time
        case Grouped():
            yield from step.keys
            yield from chain.from_iterable(map(_arguments, step.aggregates))
        case Joined():
            yield from step.keys
        case Sorted():
            yield from (key.expression for key in step.keys)
        case Parse():
            return


def _arguments(function: Aggregate) -> tuple[Expression, ...]:
    return function.arguments + (() if function.where is None else (function.where,))


def _type_objections(kind: pa.DataType) -> Iterator[str]:
    types = pa.types
    if types.is_decimal(kind):
        if kind.precision > UNSCALED_DIGITS_MAX:
            yield f"decimals of more than {UNSCALED_DIGITS_MAX} digits"
        return
    is_time = types.is_date32(kind) or (types.is_timestamp(kind) and kind.unit == "us")
    is_number = types.is_signed_integer(kind) or types.is_float32(kind) or types.is_float64(kind)
    if not (is_time or is_number or types.is_boolean(kind) or types.is_string(kind)):
        yield f"columns of {kind}"


def _expression_objections(expression: Expression, types: Sequence[pa.DataType]) -> Iterator[str]:
    yield from _type_objections(type_of(expression, types))
    if not isinstance(expression, Call):
        return
    if expression.name not in FUNCTIONS and expression.name not in BY_NEED:
        yield f"the function {expression.name}"
        return
    for argument in expression.arguments:
        yield from _expression_objections(argument, types)
    yield from _call_objections(expression, [type_of(each, types) for each in expression.arguments])


def _call_objections(call: Call, arguments: list[pa.DataType]) -> Iterator[str]:
    target = arrow_type(call.type)
    if call.name == "cast":
        if not is_cast_taken(arguments[0], target):
            yield f"a cast from {arguments[0]} to {target}"
    elif call.name in COMPARISONS or call.name == "in":
        yield from _mixed(call.name, arguments[0], arguments[1:])
    elif call.name == "coalesce":
        yield from _mixed(call.name, target, arguments)
    elif call.name == "case":
        values = [*arguments[1::2], *(arguments[-1:] if len(arguments) % 2 else ())]
        yield from _mixed(call.name, target, values)
    elif call.name in TEXT_FUNCTIONS:
        if not all(isinstance(each, Literal) for each in call.arguments[1:]):
            yield f"{call.name} of two columns"
    elif pa.types.is_decimal(target) and call.name in FUNCTIONS:
        yield from _decimal_objections(call, target, arguments)


def _mixed(name: str, first: pa.DataType, others: Sequence[pa.DataType]) -> Iterator[str]:
    """Types that a function has side by side though they are not written alike."""
    for other in others:
        if not _are_alike(first, other):
            yield f"{name} of {first} and {other}"


def _are_alike(first: pa.DataType, second: pa.DataType) -> bool:
    """Whether values of two types are written alike; the name of a time's zone does not matter."""
    if pa.types.is_timestamp(first) and pa.types.is_timestamp(second):
        return (first.tz is None) == (second.tz is None)
    return bool(first == second)


def _decimal_objections(
    call: Call, target: pa.DataType, arguments: list[pa.DataType]
) -> Iterator[str]:
    """Results have the digits that Spark gives them where none are lost; others are not tried."""
    if call.name not in DECIMAL_FUNCTIONS:
        yield f"{call.name} of decimals"
        return
    if not all(pa.types.is_decimal(each) for each in arguments):
        yield f"{call.name} of decimals and other numbers"
        return
    is_product = call.name == "multiply"
    scales = [each.scale for each in arguments]
    whole_digits = [each.precision - each.scale for each in arguments]
    scale = sum(scales) if is_product else max(scales)
    digits = scale + (sum(whole_digits) if is_product else max(whole_digits))
    if target.scale != scale or target.precision < digits:
        yield f"{call.name} with a result of {target}"


def _join_objections(step: Joined, types: Sequence[pa.DataType]) -> Iterator[str]:
    table = [each.type for each in static_table(step.table).columns]
    for kind in table:
        yield from _type_objections(kind)
    for expression in step.table_keys:
        yield from _expression_objections(expression, table)
    if not step.keys:
        yield "a join without keys"
    for key, table_key in zip(step.keys, step.table_keys, strict=True):
        yield from _mixed("a join", type_of(key, types), [type_of(table_key, table)])
