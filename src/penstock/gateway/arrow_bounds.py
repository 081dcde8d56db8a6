"""Sizes of Arrow rows once they are unpacked, known before they are.

A few hundred bytes of an IPC stream can hold gigabytes: compressed buffers, dictionaries whose
values are long, views of one text a million times, and columns of nothing that have a length only.
"""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from penstock.errors import BadCall

# Places of fields in the tables of Arrow's Message.fbs.
_HEADER_TYPE, _HEADER = 1, 2
_BUFFERS, _COMPRESSION = 2, 3
_DATA = 1
_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2
_VALUE_BYTES_MAX = 16
"""Of a value that is no text, as a stream has it; a column of type null can become any."""
_HAVE_LENGTHS = (
    kinds.is_string,
    kinds.is_binary,
    kinds.is_large_string,
    kinds.is_large_binary,
    kinds.is_fixed_size_binary,
)
_LISTS = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list, kinds.is_map)


def compressed_bytes(body: pa.Buffer) -> int:
    """Bytes that the compressed buffers of an IPC stream say they come to.

    Raises struct.error or an Arrow exception for what is no IPC stream.
    """
    total = 0
    for message in pa.ipc.MessageReader.open_stream(body):
        if message.type in ("record batch", "dictionary"):
            total += _declared(memoryview(message.metadata), message.body)
    return total


def _declared(metadata: memoryview, body: pa.Buffer | None) -> int:
    (root,) = struct.unpack_from("<I", metadata)
    kind = _field(metadata, root, _HEADER_TYPE)
    batch = _table(metadata, root, _HEADER)
    if kind is not None and metadata[kind] == _DICTIONARY_BATCH and batch is not None:
        batch = _table(metadata, batch, _DATA)
    if batch is None or body is None or _field(metadata, batch, _COMPRESSION) is None:
        return 0
    vector = _table(metadata, batch, _BUFFERS)
    if vector is None:
        return 0
    (count,) = struct.unpack_from("<I", metadata, vector)
    data, total = memoryview(body), 0
    for number in range(count):
        offset, length = struct.unpack_from("<qq", metadata, vector + 4 + 16 * number)
        if length > 0:
            # A compressed buffer begins with its length; -1 says that it is as it was.
            (unpacked,) = struct.unpack_from("<q", data, offset)
            total += max(unpacked, length)
    return total


def _field(data: memoryview, table: int, number: int) -> int | None:
    """The place of a field in a flatbuffers table; None if it has not been given."""
    (back,) = struct.unpack_from("<i", data, table)
    (size,) = struct.unpack_from("<H", data, table - back)
    if 4 + 2 * number >= size:
        return None
    (offset,) = struct.unpack_from("<H", data, table - back + 4 + 2 * number)
    return table + offset if offset else None


def _table(data: memoryview, table: int, number: int) -> int | None:
    """The place of the table or vector that a field refers to."""
    place = _field(data, table, number)
    return None if place is None else place + int(struct.unpack_from("<I", data, place)[0])


def fitted_bytes(rows: pa.RecordBatch, schema: pa.Schema) -> int:
    """Bytes that the rows come to with the columns of a stream, those that are left out too."""
    total = 0
    for field in schema:
        place = rows.schema.get_field_index(field.name)
        sent = unpacked_bytes(rows.column(place)) if place >= 0 else 0
        total += max(sent, rows.num_rows * value_bytes(field.type))
    return total


def value_bytes(kind: pa.DataType) -> int:
    """The bytes of one value, null or not, of a type that a stream has."""
    if kinds.is_struct(kind):
        return max(1, sum(value_bytes(field.type) for field in kind))
    if kinds.is_primitive(kind) or kinds.is_decimal(kind):
        return int(-(-kind.bit_width // 8))
    return 4


def unpacked_bytes(column: pa.Array) -> int:
    """Bytes that a column comes to as one of a stream, which has no dictionaries and views."""
    kind = column.type
    if kinds.is_null(kind):
        return _VALUE_BYTES_MAX * len(column)
    if kinds.is_dictionary(kind):
        return _taken_bytes(column.dictionary, column.indices)
    if kinds.is_string_view(kind) or kinds.is_binary_view(kind):
        # Its views say how long each value is, whatever they share.
        lengths = memoryview(column.buffers()[1]).cast("i")[::4]
        return 4 * len(column) + sum(lengths[column.offset : column.offset + len(column)])
    if any(is_list(kind) for is_list in _LISTS):
        return 4 * len(column) + unpacked_bytes(column.values)
    if kinds.is_struct(kind):
        return sum(unpacked_bytes(column.field(place)) for place in range(kind.num_fields))
    if kinds.is_nested(kind) or kinds.is_run_end_encoded(kind):
        raise BadCall(
            f"a column of type {kind} cannot become one of a stream; send lists, structs and maps",
            code="rows_do_not_fit",
        )
    return int(column.nbytes)


def _taken_bytes(values: pa.Array, indices: pa.Array) -> int:
    """The size of the values that indices take, each as often as it is taken."""
    kind = values.type
    if kinds.is_nested(kind) or kinds.is_dictionary(kind):
        raise BadCall(
            f"a dictionary of {kind} cannot become a column of a stream; send the values",
            code="rows_do_not_fit",
        )
    if kinds.is_string_view(kind) or kinds.is_binary_view(kind):
        values = values.cast(pa.large_binary())
        kind = values.type
    if not any(has_length(kind) for has_length in _HAVE_LENGTHS):
        return _VALUE_BYTES_MAX * len(indices)
    taken = pc.sum(pc.take(pc.binary_length(values), indices)).as_py()
    return 4 * len(indices) + int(taken or 0)
