"""Sizes of rows that come as text, known before they are made.

A line of two bytes is a row of every column that the stream has, so the length of a body says
little about what it becomes. What is counted is what a row takes whose values are all null; the
texts in a body come on top of it, and are no longer than the body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.types as kinds

from penstock.errors import BadCall
from penstock.gateway.arrow_bounds import value_bytes

SCHEMAS_MAX = 1_000
HEADER_SLACK_BYTES = 4 << 10
"""Of names that the stream does not have: the error that names them is a better one."""
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


class RowSize(NamedTuple):
    """The size of a row of a schema, all of it null, and what else bounds the text it comes in.

    `object_bytes` is the size of the widest struct in a list or map of it, which a line may hold
    any number of (0: it can hold none); `header_bytes` is more than the first line of a CSV with
    all of its columns has (0: their names say nothing about that).
    """

    schema: pa.Schema
    row_bytes: int
    object_bytes: int
    header_bytes: int
    is_nested: bool


# By the schema's id, as its hash is made of all its fields. An entry keeps its schema, so that no
# other can have the id.
_SIZES: dict[int, RowSize] = {}


def row_size(schema: pa.Schema) -> RowSize:
    """The size of a row; made once for each schema."""
    size = _SIZES.get(id(schema))
    if size is None:
        types = [field.type for field in schema]
        size = RowSize(
            schema,
            sum(value_bytes(kind) for kind in types),
            max((value_bytes(each) for kind in types for each in _repeated(kind)), default=0),
            _header_bytes(schema.names),
            any(kinds.is_nested(kind) for kind in types),
        )
        if len(_SIZES) >= SCHEMAS_MAX:
            _SIZES.clear()
        _SIZES[id(schema)] = size
    return size


def _header_bytes(names: Sequence[str]) -> int:
    if any(letter in name for name in names for letter in '"\r\n'):
        return 0
    return sum(len(name.encode()) + 3 for name in names) + HEADER_SLACK_BYTES


def _repeated(kind: pa.DataType, is_repeated: bool = False) -> Iterator[pa.DataType]:
    """The structs that a value of the type may hold many of."""
    if kinds.is_struct(kind):
        if is_repeated:
            yield kind
        for field in kind:
            yield from _repeated(field.type, is_repeated)
    elif kinds.is_map(kind):
        yield from _repeated(kind.item_type, True)
    elif kinds.is_list(kind):
        yield from _repeated(kind.value_type, True)


def object_bytes(line: bytes, size: RowSize, bytes_max: int) -> int:
    """Bytes that the objects in a line come to at most: each is taken for the widest there is."""
    total = line.count(b"{") * size.object_bytes
    if total > bytes_max:
        # Braces inside of texts are no objects; to leave these out takes a while.
        total = _TEXT.sub(b"", line).count(b"{") * size.object_bytes
    return total


def unpacked_too_large(size: int, bound: int) -> BadCall:
    return BadCall(
        f"the rows take {size} bytes once they are unpacked, and those of a request at most "
        f"{bound}; send them in parts",
        code="request_too_large",
        status=413,
    )
