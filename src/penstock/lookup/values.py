"""Texts and JSON from a store, made into values of the columns' types; wrong ones are refused.

Numbers, dates and times are read from text as JSON would write them, times as ISO 8601, in UTC
unless they say otherwise. Nothing is rounded or cut off: 3.5 is no `int`, and 300 no `tinyint`.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias, TypedDict

import msgspec
import pyarrow as pa

from penstock.errors import BadCall
from penstock.model.ddl import type_ddl
from penstock.prefetch.value_cache import Row

SHOWN_MAX = 80
"""Characters of a wrong value that an error shows: it may be a document."""

Text: TypeAlias = Callable[[bytes], Any]

_INTEGERS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}


class WrongValue(ValueError):
    """A value that is not of its column's type, in words without the key."""


def text_reader(kind: pa.DataType) -> Text:
    """A function from the bytes of one value to that value of an Arrow type."""
    if pa.types.is_binary(kind):
        return bytes
    if pa.types.is_string(kind):
        return _decoded
    if pa.types.is_nested(kind):
        decoder = msgspec.json.Decoder(_python_type(kind), strict=False)
        return lambda data: _checked(kind, data, decoder.decode)
    python_type = _python_type(kind)

    def read(data: bytes) -> Any:
        return _checked(
            kind,
            data,
            lambda text: msgspec.convert(_decoded(text).strip(), python_type, strict=False),
        )

    return read


def json_reader(columns: pa.Schema) -> Callable[[bytes], Row]:
    """A function from the bytes of a JSON object to the row of its fields; others are ignored."""
    fields = {field.name: _optional(field.type) for field in columns}
    decoder = msgspec.json.Decoder(_typed_dict("Value", fields))
    names = columns.names

    def read(data: bytes) -> Row:
        try:
            fields_of = decoder.decode(data).get
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WrongValue(f"{_shown(data)} is not of the columns' types: {error}") from error
        return tuple(fields_of(name) for name in names)

    return read


def wrong_value(key: object, where: str, why: Exception | str) -> BadCall:
    """The error for a value that cannot be a row; the query cannot go on past it."""
    return BadCall(
        f"the value of the key {_shown(key)} in {where} cannot be used: {why}; change the value in "
        "the store, or the columns that it is read as",
        code="wrong_value",
    )


def column_of(
    field: pa.Field, keys: Sequence[object], rows: Sequence[Row | None], place: int, where: str
) -> pa.Array:
    """One column of the rows, null where there is none; a value of another type is refused."""
    values = [None if row is None else row[place] for row in rows]
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        for key, value in zip(keys, values, strict=True):
            try:
                pa.array([value], field.type)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                why = f"{_shown(value)} is no {type_ddl(field.type)} for {field.name} ({error})"
                raise wrong_value(key, where, why) from error
        raise


def _checked(kind: pa.DataType, data: bytes, read: Callable[[bytes], Any]) -> Any:
    try:
        return read(data)
    except (msgspec.ValidationError, msgspec.DecodeError, ValueError) as error:
        raise WrongValue(f"{_shown(data)} is no {type_ddl(kind)}") from error


def _decoded(data: bytes) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise WrongValue(f"{_shown(data)} is no text in UTF-8; read it as binary") from error


def _python_type(kind: pa.DataType) -> Any:
    """The type that msgspec checks a value against."""
    if kind in _INTEGERS:
        bound = 2 ** _INTEGERS[kind]
        return Annotated[int, msgspec.Meta(ge=-bound, le=bound - 1)]
    if pa.types.is_list(kind):
        return list[_optional(kind.value_type)]  # type: ignore[misc]
    if pa.types.is_struct(kind):
        fields = {field.name: _optional(field.type) for field in kind}
        return _typed_dict("Struct", fields)
    if pa.types.is_map(kind):
        return dict[_python_type(kind.key_type), _optional(kind.item_type)]  # type: ignore[misc]
    simple: tuple[tuple[Callable[[pa.DataType], bool], Any], ...] = (
        (pa.types.is_string, str),
        (pa.types.is_boolean, bool),
        (pa.types.is_floating, float),
        (pa.types.is_decimal, decimal.Decimal),
        (pa.types.is_date, datetime.date),
        (pa.types.is_timestamp, datetime.datetime),
        # JSON has no bytes: base64, as msgspec reads them.
        (pa.types.is_binary, bytes),
    )
    for is_kind, python_type in simple:
        if is_kind(kind):
            return python_type
    raise BadCall(
        f"a value cannot be read as {kind}; use Spark's simple types, arrays, structs and maps",
        code="bad_schema",
    )


def _optional(kind: pa.DataType) -> Any:
    return _python_type(kind) | None


def _typed_dict(name: str, fields: dict[str, Any]) -> Any:
    return TypedDict(name, fields, total=False)  # type: ignore[operator]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
