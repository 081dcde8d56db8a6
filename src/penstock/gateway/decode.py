"""Request bodies to rows: Arrow IPC, JSON lines, CSV, each against the stream's schema.

Every function here either returns rows of exactly the schema or raises `bad_rows` (the body
cannot be read; the sentence says where) or `rows_do_not_fit` (it can, and is something else).
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.types as kinds

from penstock.errors import BadCall
from penstock.gateway.arrow_bounds import compressed_bytes, fitted_bytes
from penstock.gateway.json_rows import decode_lines
from penstock.gateway.row_sizes import row_size, unpacked_too_large
from penstock.model.schema import fit, type_ddl

ARROW = "application/vnd.apache.arrow.stream"
JSON_LINES = "application/x-ndjson"
CSV = "text/csv"
LINES_BYTES_MIN = 32 << 10
"""From which size on Arrow's own reader of JSON is the quicker one."""
_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*([^\r\n]*)")


def bad_rows(message: str) -> BadCall:
    return BadCall(message, code="bad_rows")


def _sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def arrow_batches(
    body: bytes, schema: pa.Schema, bytes_max: int
) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """The record batches of an IPC stream, validated to the last offset, and no larger than
    `bytes_max` when they are unpacked and have the columns of `schema`."""
    try:
        buffer = pa.py_buffer(body)
        declared = compressed_bytes(buffer)
        if declared > bytes_max:
            raise unpacked_too_large(declared, bytes_max)
        with pa.ipc.open_stream(buffer) as reader:
            sent, batches, size = reader.schema, [], 0
            for batch in reader:
                batch.validate(full=True)
                batches.append(batch)
                size += fitted_bytes(batch, schema)
                if size > bytes_max:
                    raise unpacked_too_large(size, bytes_max)
            return sent, batches
    except (pa.ArrowException, OSError, UnicodeDecodeError, struct.error) as error:
        raise bad_rows(
            f"the body is not a whole Arrow IPC stream: {_sentence(error)}; send one, with its "
            "schema and end"
        ) from error


def _from_arrow(body: bytes, schema: pa.Schema, first: pa.Schema, bytes_max: int) -> pa.RecordBatch:
    sent, batches = arrow_batches(body, schema, bytes_max)
    if len(batches) == 1:
        return fit(batches[0], schema, first)
    return fit(pa.Table.from_batches(batches, schema=sent), schema, first)


def _from_json(body: bytes, schema: pa.Schema, _: pa.Schema, bytes_max: int) -> pa.RecordBatch:
    """Arrow's own reader where it is quicker and reads the types as we do; else, and for exact
    errors, ours."""
    if _suits_arrow(body, schema, bytes_max):
        try:
            table = pyarrow.json.read_json(
                io.BytesIO(body),
                pyarrow.json.ReadOptions(use_threads=False, block_size=len(body) + 1),
                pyarrow.json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="error"
                ),
            )
            table.validate(full=True)  # that reader takes text that is not UTF-8
            return fit(table, schema)
        except (pa.ArrowException, BadCall):
            pass
    return decode_lines(body, schema, bytes_max)


def _suits_arrow(body: bytes, schema: pa.Schema, bytes_max: int) -> bool:
    """Whether Arrow's reader is the quicker one and reads the types as we do. It makes all rows at
    once, and takes several in a line: there must be room for as many as there may be."""
    return (
        len(body) >= LINES_BYTES_MIN
        and body.count(b"{") * row_size(schema).row_bytes <= bytes_max
        and all(_is_plain(field.type) for field in schema)
    )


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        kinds.is_boolean(kind)
        or kinds.is_integer(kind)
        or kinds.is_float64(kind)
        or kinds.is_string(kind)
    )


def _from_csv(body: bytes, schema: pa.Schema, first: pa.Schema, bytes_max: int) -> pa.RecordBatch:
    for field in schema:
        if kinds.is_nested(field.type):
            raise bad_rows(
                f"column {field.name!r} of type {type_ddl(field.type)} cannot be written in CSV; "
                "send JSON lines or Arrow"
            )
    _check_header(body, schema)
    size = row_size(schema).row_bytes
    if (body.count(b"\n") + body.count(b"\r") + 1) * size > bytes_max:
        # Some of these may be in values, or empty lines: the parser knows, and makes no columns.
        counting = pyarrow.csv.ConvertOptions(
            include_columns=[schema.field(0).name], include_missing_columns=True
        )
        size *= _read_csv(body, counting).num_rows
        if size > bytes_max:
            raise unpacked_too_large(size, bytes_max)
    as_sent = pyarrow.csv.ConvertOptions(
        column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return fit(_read_csv(body, as_sent), schema, first)


def _check_header(body: bytes, schema: pa.Schema) -> None:
    """Refuse a header of millions of columns, before Arrow makes them."""
    bytes_max = row_size(schema).header_bytes
    first = _FIRST_LINE.match(body)
    header = first[1] if first is not None and bytes_max else b""
    if len(header) > bytes_max or header.count(b'"') % 2:
        raise bad_rows(
            "the first line of the CSV is no list of the stream's columns, which are "
            f"{', '.join(schema.names)}; name these"
        )


def _read_csv(body: bytes, options: pyarrow.csv.ConvertOptions) -> pa.Table:
    try:
        return pyarrow.csv.read_csv(
            io.BytesIO(body),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=max(len(body), 1 << 16)),
            pyarrow.csv.ParseOptions(newlines_in_values=True),
            options,
        )
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise bad_rows(
            f"the CSV cannot be read: {_sentence(error)}; rows are counted from the header, "
            "which is 1"
        ) from error


_READERS: dict[str, Callable[[bytes, pa.Schema, pa.Schema, int], pa.RecordBatch]] = {
    ARROW: _from_arrow,
    JSON_LINES: _from_json,
    CSV: _from_csv,
}


def rows_from(
    body: bytes, content_type: str, schema: pa.Schema, first: pa.Schema, bytes_max: int
) -> pa.RecordBatch:
    """The rows of a body as one record batch of the stream's schema, of at most `bytes_max` when
    unpacked; columns that the `first` schema of the stream did not have may be left out."""
    reader = _READERS.get(content_type)
    if reader is None:
        raise BadCall(
            f"the content type {content_type!r} is not read here; send one of "
            f"{', '.join(_READERS)}",
            code="bad_request",
        )
    return reader(body, schema, first, bytes_max)
