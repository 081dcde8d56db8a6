"""Request bodies to rows: Arrow IPC, JSON lines, CSV, each against the stream's schema.

Every function here either returns rows of exactly the schema or raises `bad_rows` (the body
cannot be read; the sentence says where) or `rows_do_not_fit` (it can, and is something else).
"""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.types as kinds

from penstock.errors import BadCall
from penstock.gateway.json_rows import decode_lines
from penstock.model.schema import fit, type_ddl

ARROW = "application/vnd.apache.arrow.stream"
JSON_LINES = "application/x-ndjson"
CSV = "text/csv"


def bad_rows(message: str) -> BadCall:
    return BadCall(message, code="bad_rows")


def _sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def arrow_batches(body: bytes) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """The record batches of an IPC stream, validated to the last offset."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            batches = list(reader)
            for batch in batches:
                batch.validate(full=True)
            return reader.schema, batches
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise bad_rows(
            f"the body is not a whole Arrow IPC stream: {_sentence(error)}; send one, with its "
            "schema and end"
        ) from error


def _from_arrow(body: bytes, schema: pa.Schema, first: pa.Schema) -> pa.RecordBatch:
    sent, batches = arrow_batches(body)
    if len(batches) == 1:
        return fit(batches[0], schema, first)
    return fit(pa.Table.from_batches(batches, schema=sent), schema, first)


def _from_json(body: bytes, schema: pa.Schema, _: pa.Schema) -> pa.RecordBatch:
    """Arrow's own reader where it reads the types as we do; else, and for exact errors, ours."""
    if body and all(_is_plain(field.type) for field in schema):
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
    return decode_lines(body, schema)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        kinds.is_boolean(kind)
        or kinds.is_integer(kind)
        or kinds.is_float64(kind)
        or kinds.is_string(kind)
    )


def _from_csv(body: bytes, schema: pa.Schema, first: pa.Schema) -> pa.RecordBatch:
    for field in schema:
        if kinds.is_nested(field.type):
            raise bad_rows(
                f"column {field.name!r} of type {type_ddl(field.type)} cannot be written in CSV; "
                "send JSON lines or Arrow"
            )
    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(body),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=max(len(body), 1 << 16)),
            pyarrow.csv.ParseOptions(newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise bad_rows(
            f"the CSV cannot be read: {_sentence(error)}; rows are counted from the header, "
            "which is 1"
        ) from error
    return fit(table, schema, first)


_READERS: dict[str, Callable[[bytes, pa.Schema, pa.Schema], pa.RecordBatch]] = {
    ARROW: _from_arrow,
    JSON_LINES: _from_json,
    CSV: _from_csv,
}


def rows_from(
    body: bytes, content_type: str, schema: pa.Schema, first: pa.Schema
) -> pa.RecordBatch:
    """The rows of a body as one record batch of the stream's schema; columns that the `first`
    schema of the stream did not have may be left out."""
    reader = _READERS.get(content_type)
    if reader is None:
        raise BadCall(
            f"the content type {content_type!r} is not read here; send one of "
            f"{', '.join(_READERS)}",
            code="bad_request",
        )
    return reader(body, schema, first)
