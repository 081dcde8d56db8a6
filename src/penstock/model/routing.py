"""The substream that a row goes to: CRC-32 of the key's canonical bytes, modulo the substreams.

The plug-in has the same rule in Scala; both are checked against `tests/vectors/routing.json`. The
canonical bytes of a key are, for each key column in order: byte 0 for null, else byte 1 and then

    boolean                     one byte, 0 or 1
    integers, date, timestamps  8 bytes, big-endian two's complement (days, microseconds)
    float, double               8 bytes, the bits of the double; -0.0 as 0.0, one NaN (7ff8…)
    string, binary              4 bytes of length, then the bytes (UTF-8 for strings)
    decimal                     as a string: the plain digits with the column's scale
"""

from __future__ import annotations

import decimal
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from penstock.errors import BadCall
from penstock.model.ids import Substream
from penstock.model.schema import type_ddl

NULL = b"\x00"
_LONG = struct.Struct(">Bq")
_DOUBLE = struct.Struct(">Bd")
_NAN = b"\x01\x7f\xf8\x00\x00\x00\x00\x00\x00"
_PLAIN_DIGITS = decimal.Context(prec=50)

Encoder = Callable[[Any], bytes]


def check_key(schema: pa.Schema, key: Sequence[str]) -> None:
    """Refuse a key that names no column, or a column whose type cannot be a key."""
    for name in key:
        if name not in schema.names:
            raise BadCall(
                f"the key names {name!r}, and the columns are {', '.join(schema.names)}; "
                "name one of them",
                code="bad_request",
            )
        encoder(name, schema.field(name).type)


def encoder(name: str, kind: pa.DataType) -> Encoder:
    """The writer of a value of a canonical type; the values are those of `storage`."""
    if kinds.is_boolean(kind):
        return lambda value: b"\x01\x01" if value else b"\x01\x00"
    if kinds.is_integer(kind) or kinds.is_date32(kind) or kinds.is_timestamp(kind):
        return lambda value: _LONG.pack(1, value)
    if kinds.is_floating(kind):
        return _double
    if kinds.is_string(kind):
        return lambda value: _sized(value.encode("utf-8"))
    if kinds.is_binary(kind):
        return _sized
    if kinds.is_decimal(kind):
        step = decimal.Decimal(1).scaleb(-kind.scale)
        return lambda value: _sized(
            format(value.quantize(step, context=_PLAIN_DIGITS), "f").encode("ascii")
        )
    raise BadCall(
        f"column {name!r} of type {type_ddl(kind)} cannot be a key; "
        "use a column that is not nested",
        code="bad_request",
    )


def _sized(data: bytes) -> bytes:
    return b"\x01" + len(data).to_bytes(4, "big") + data


def _double(value: float) -> bytes:
    if math.isnan(value):
        return _NAN
    return _DOUBLE.pack(1, value + 0.0)


def storage(column: pa.Array) -> pa.Array:
    """The column with dates and timestamps as plain integers, which is what is hashed."""
    if kinds.is_date32(column.type):
        return column.view(pa.int32())
    if kinds.is_timestamp(column.type):
        return column.view(pa.int64())
    return column


def hash_of(key_bytes: bytes) -> int:
    return zlib.crc32(key_bytes)


def place(key_bytes: bytes, substreams: int) -> Substream:
    """The substream of one row by the canonical bytes of its key."""
    return Substream(hash_of(key_bytes) % substreams)


def _codes(column: pa.Array, encode: Encoder) -> tuple[np.ndarray[Any, Any], list[bytes]]:
    """Per row the place of its value among the distinct values, and those values' bytes."""
    encoded = storage(column).dictionary_encode(null_encoding="encode")
    values = [NULL if value is None else encode(value) for value in encoded.dictionary.to_pylist()]
    return encoded.indices.to_numpy(zero_copy_only=False), values


def substreams_of(batch: pa.RecordBatch, key: Sequence[str], substreams: int) -> Any:
    """Per row its substream, as a NumPy array; only distinct keys are hashed."""
    rows, width = None, 1
    parts: list[bytes] = [b""]
    for name in key:
        column = batch.column(name)
        codes, values = _codes(column, encoder(name, column.type))
        if rows is None:
            rows, parts = codes.astype(np.int64), values
        else:
            width = len(values)
            pairs, rows = np.unique(rows * width + codes, return_inverse=True)
            parts = [parts[pair // width] + values[pair % width] for pair in pairs.tolist()]
    if rows is None:
        raise BadCall("the key names no column; name one or leave it out", code="bad_request")
    places = np.fromiter((place(part, substreams) for part in parts), np.int64, len(parts))
    return places[rows]


def split(
    batch: pa.RecordBatch, key: Sequence[str], substreams: int
) -> list[tuple[Substream, pa.RecordBatch]]:
    """The rows of each substream that gets any, in the order they had in `batch`."""
    check_key(batch.schema, key)
    if batch.num_rows == 0:
        return []
    if substreams == 1:
        return [(Substream(0), batch)]
    places = substreams_of(batch, key, substreams)
    order = np.argsort(places, kind="stable")
    sorted_rows = batch.take(_indices(order))
    present, starts = np.unique(places[order], return_index=True)
    ends = [*starts.tolist()[1:], batch.num_rows]
    return [
        (Substream(int(substream)), sorted_rows.slice(start, end - start))
        for substream, start, end in zip(present.tolist(), starts.tolist(), ends, strict=True)
    ]


def _indices(order: np.ndarray[Any, Any]) -> pa.Array:
    # `pa.array` looks whether it was given something of pandas, and imports it for that: a second
    # of the first append to a server.
    whole = np.ascontiguousarray(order, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])


def key_bytes(columns: Sequence[pa.Array]) -> list[bytes]:
    """The canonical bytes of every row, one by one: the plain reading of the rule, for tests."""
    encoders = [encoder(str(place), column.type) for place, column in enumerate(columns)]
    values = [storage(column).to_pylist() for column in columns]
    return [
        b"".join(
            NULL if value is None else encode(value)
            for encode, value in zip(encoders, row, strict=True)
        )
        for row in zip(*values, strict=True)
    ]
