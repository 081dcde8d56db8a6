"""JSON lines to rows and back, with the types JSON lacks written one way in both directions.

Timestamps and dates are ISO 8601 text (with a zone for `timestamp`, without for `timestamp_ntz`),
decimals numbers or text, binary base64, structs and maps objects, arrays arrays. A column that a
line leaves out is null; a column the stream does not have is an error, with the line's number.
"""

from __future__ import annotations

import datetime
import decimal
import io
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, Optional

import msgspec
import pyarrow as pa
import pyarrow.types as kinds

from penstock.errors import BadCall
from penstock.gateway.row_sizes import RowSize, object_bytes, row_size, unpacked_too_large
from penstock.model.schema import fit, type_ddl

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


PART_VALUES = 1 << 20
PART_BYTES = 16 << 20
"""Of rows that are objects of Python at once, which take many times what their columns do."""


def decode_lines(body: bytes, schema: pa.Schema, bytes_max: int) -> pa.RecordBatch:
    """The rows of JSON lines, refused if they come to more than `bytes_max`; empty lines are
    skipped, `bad_rows` names the first bad line."""
    size = row_size(schema)
    if (body.count(b"\n") + 1) * size.row_bytes > bytes_max:
        count = sum(not line.isspace() for line in io.BytesIO(body))
        _check_bytes(count * size.row_bytes, bytes_max)
    lines = _lines_of(schema)
    rows_max = max(1, PART_VALUES // len(lines.fields))
    rows: list[Any] = []
    parts: list[pa.RecordBatch] = []
    objects = made = 0
    for number, line in enumerate(io.BytesIO(body), 1):
        if line.isspace():
            continue
        if size.object_bytes:
            objects += _check_bytes(object_bytes(line, size, bytes_max), bytes_max)
        try:
            rows.append(lines.decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadCall(
                f"line {number} is not a row of this stream: {error}", code="bad_rows"
            ) from None
        if len(rows) >= rows_max or objects > PART_BYTES:
            parts.append(_part(rows, lines))
            made = _made_bytes(made, parts[-1], size, bytes_max)
            rows, objects = [], 0
    if rows or not parts:
        parts.append(_part(rows, lines))
        _made_bytes(made, parts[-1], size, bytes_max)
    return parts[0] if len(parts) == 1 else fit(pa.Table.from_batches(parts), schema)


def _check_bytes(size: int, bytes_max: int) -> int:
    if size > bytes_max:
        raise unpacked_too_large(size, bytes_max)
    return size


def _made_bytes(before: int, part: pa.RecordBatch, size: RowSize, bytes_max: int) -> int:
    """The bytes made with this part; those of flat rows are known by their number."""
    return _check_bytes(before + part.nbytes, bytes_max) if size.is_nested else 0


def _part(rows: Sequence[Any], lines: Lines) -> pa.RecordBatch:
    columns = [
        _column([getattr(row, f"c{place}") for row in rows], field)
        for place, field in enumerate(lines.fields)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=lines.schema)


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
