"""Names and types of the columns that a pipeline yields, as far as its steps tell them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from penstock.devices.operators.aggregate import MAKERS, Aggregate
from penstock.devices.operators.expressions import Column, Expression
from penstock.devices.operators.types import arrow_type
from penstock.devices.pipeline import Expand, Grouped, Joined, Parse, Pipeline, Project, Step
from penstock.errors import BadCall
from penstock.model.ddl import type_ddl


class ResultColumn(NamedTuple):
    """A column of a pipeline's result: its type is Spark's name of one, or that of a column of the
    frame, by its place. What is computed is called `c` and its place."""

    name: str
    type: str | int


Columns: TypeAlias = Sequence[ResultColumn]


def result_columns(pipeline: Pipeline, names: Sequence[str]) -> list[ResultColumn]:
    """The columns that a pipeline makes of a frame's with these names; BadCall where its steps do
    not tell a type, or two columns have one name."""
    columns = [ResultColumn(name, place) for place, name in enumerate(names)]
    for number, step in enumerate(pipeline.steps, 1):
        try:
            columns = _after(step, columns)
        except BadCall as error:
            raise _underived(f"step {number}: {error.message}") from error
    lowered = [column.name.lower() for column in columns]
    repeated = sorted({name for name in lowered if lowered.count(name) > 1})
    if repeated:
        raise _underived(f"several columns are called {', '.join(repeated)}")
    return columns


def buffer_types(function: Aggregate) -> list[str]:
    """The types of the buffers of a function."""
    if function.function == "mean":
        return [function.type, "bigint"]
    if function.function == "sum" and pa.types.is_decimal(arrow_type(function.type)):
        return [function.type, "boolean"]
    return [function.type]


def _after(step: Step, columns: Columns) -> list[ResultColumn]:
    """The columns after a step."""
    match step:
        case Project():
            return _computed(step.columns, columns)
        case Expand():
            # A column that only some copies pass on is computed.
            places = zip(*step.projections, strict=True)
            same = [each[0] if len(set(each)) == 1 else None for each in places]
            first = _computed(step.projections[0], columns)
            return [
                each if passed is not None else ResultColumn(f"c{place}", each.type)
                for place, (each, passed) in enumerate(zip(first, same, strict=True))
            ]
        case Parse():
            return [*columns, *(ResultColumn(name, _known(kind)) for name, kind in step.fields)]
        case Joined():
            return [*columns, *_table_columns(step.table)]
        case Grouped():
            keys = _computed(step.keys, columns)
            kinds = [kind for each in step.aggregates for kind in _buffers(each)]
            return [
                *keys,
                *(ResultColumn(f"c{place}", kind) for place, kind in enumerate(kinds, len(keys))),
            ]
        case _:
            return list(columns)


def _computed(expressions: Sequence[Expression], columns: Columns) -> list[ResultColumn]:
    return [_column(each, f"c{place}", columns) for place, each in enumerate(expressions)]


def _column(expression: Expression, name: str, columns: Columns) -> ResultColumn:
    if not isinstance(expression, Column):
        return ResultColumn(name, _known(expression.type))
    if not 0 <= expression.index < len(columns):
        raise BadCall(
            f"there are {len(columns)} columns, and none at the place {expression.index}",
            code="no_column",
        )
    return columns[expression.index]


def _buffers(function: Aggregate) -> list[str]:
    if function.function not in MAKERS:
        raise BadCall(f"the function {function.function} is not known", code="unknown_function")
    return list(map(_known, buffer_types(function)))


def _table_columns(stream: bytes) -> list[ResultColumn]:
    with pa.ipc.open_stream(stream) as reader:
        return [ResultColumn(field.name, _known(type_ddl(field.type))) for field in reader.schema]


def _known(kind: str) -> str:
    arrow_type(kind)
    return kind


def _underived(problem: str) -> BadCall:
    return BadCall(
        f"the columns that the pipeline yields cannot be told from its steps ({problem}); give "
        "`schema`, such as 'k string, n bigint'",
        code="bad_schema",
    )
