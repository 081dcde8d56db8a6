"""JSON lines to rows and back, with the types JSON lacks written one way in both directions.

Timestamps and dates are ISO 8601 text (with a zone for `timestamp`, without for `timestamp_ntz`),
decimals numbers or text, binary base64, structs and maps objects, arrays arrays. A column that a
line leaves out is null; a column the stream does not have is an error, with the line's number.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, Optional

import msgspec
import pyarrow as pa
import pyarrow.types as kinds

from penstock.errors import BadCall
from penstock.model.schema import type_ddl

_SIMPLE: tuple[tuple[Any, Any], ...] = (
    (kinds.is_boolean, bool),
    (kinds.is_floating, float),
    (kinds.is_string, str),
    (kinds.is_binary, bytes),
    (kinds.is_date, datetime.date),
    (kinds.is_decimal, decimal.Decimal),
)


def _python_type(kind: pa.DataType) -> Any:
    """The type msgspec checks a JSON value against; null is always allowed."""
    return Optional[_bare_type(kind)]  # noqa: UP045


def _bare_type(kind: pa.DataType) -> Any:
    if kinds.is_integer(kind):
        half = 1 << (kind.bit_width - 1)
        return Annotated[int, msgspec.Meta(ge=-half, le=half - 1)]
    if kinds.is_timestamp(kind):
        return Annotated[datetime.datetime, msgspec.Meta(tz=kind.tz is not None)]
    if kinds.is_list(kind):
        return list[_python_type(kind.value_type)]  # type: ignore[misc]
    if kinds.is_map(kind):
        return dict[_bare_type(kind.key_type), _python_type(kind.item_type)]  # type: ignore[misc]
    if kinds.is_struct(kind):
        return _struct_type(list(kind))
    return next(python for is_kind, python in _SIMPLE if is_kind(kind))


def _struct_type(fields: Sequence[pa.Field]) -> Any:
    """A struct type whose fields are numbered, because column names need not be identifiers."""
    names = {f"c{place}": field.name for place, field in enumerate(fields)}
    return msgspec.defstruct(
        "Row",
        [(name, _python_type(fields[place].type), None) for place, name in enumerate(names)],
        rename=names,
        forbid_unknown_fields=True,
    )


class Lines(NamedTuple):
    """A schema taken apart for reading lines: its fields, and what decodes a row of them."""

    schema: pa.Schema
    fields: tuple[pa.Field, ...]
    decoder: msgspec.json.Decoder[Any]


SCHEMAS_MAX = 1_000
# By the schema's id: its hash is made of all its fields, every time. An entry keeps its schema, so
# that no other can have the id.
_LINES: dict[int, Lines] = {}


def _lines_of(schema: pa.Schema) -> Lines:
    lines = _LINES.get(id(schema))
    if lines is None:
        fields = tuple(schema)
        lines = Lines(schema, fields, msgspec.json.Decoder(_struct_type(fields)))
        if len(_LINES) >= SCHEMAS_MAX:
            _LINES.clear()
        _LINES[id(schema)] = lines
    return lines


def decode_lines(body: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of JSON lines; empty lines are skipped, `bad_rows` names the first bad line."""
    _, fields, decoder = _lines_of(schema)
    rows = []
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadCall(
                f"line {number} is not a row of this stream: {error}", code="bad_rows"
            ) from None
    columns = [
        _column([getattr(row, f"c{place}") for row in rows], field)
        for place, field in enumerate(fields)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        if kinds.is_nested(field.type):
            values = [_plain(value, field.type) for value in values]
        return pa.array(values, field.type)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise BadCall(
            f"column {field.name!r} has a value that does not fit {type_ddl(field.type)}: {error}",
            code="bad_rows",
        ) from None


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A decoded value as Arrow's builder takes it: structs as objects, maps as pairs."""
    if value is None:
        return None
    if kinds.is_list(kind):
        return [_plain(each, kind.value_type) for each in value]
    if kinds.is_map(kind):
        return [(key, _plain(each, kind.item_type)) for key, each in value.items()]
    if kinds.is_struct(kind):
        return {
            field.name: _plain(getattr(value, f"c{place}"), field.type)
            for place, field in enumerate(kind)
        }
    return value


def encode_lines(batches: Sequence[pa.RecordBatch]) -> bytes:
    """JSON lines of the rows; a number JSON lacks (NaN, infinity) becomes null."""
    encoder = msgspec.json.Encoder()
    return b"".join(
        encoder.encode_lines(batch.to_pylist(maps_as_pydicts="strict")) for batch in batches
    )
