"""Turns what people hold in Python into Arrow rows of a stream's schema, and back.

Nothing is dropped in silence: a column the stream does not have is an error. Tables must have
every column; a dict may leave one out, which is then null, as in JSON lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa

from penstock.errors import BadCall
from penstock.model.schema import fit

if TYPE_CHECKING:
    import pandas


class Followed(NamedTuple):
    """Rows in commit order, and where to go on once they are dealt with."""

    rows: pa.Table
    position: int


Rows: TypeAlias = "pa.Table | pa.RecordBatch | Sequence[Mapping[str, Any]] | pandas.DataFrame"


def as_batch(rows: Rows, schema: pa.Schema, first_columns: int | None = None) -> pa.RecordBatch:
    """`rows` in the stream's column order and types; casts that would lose a value are refused.

    Columns after the `first_columns`, which were added to the stream later, may be left out.
    """
    first = pa.schema(list(schema)[:first_columns])
    if isinstance(rows, (pa.RecordBatch, pa.Table)):
        return fit(rows, schema, first)
    if hasattr(rows, "to_dict") and hasattr(rows, "dtypes"):
        return fit(pa.Table.from_pandas(rows, preserve_index=False), schema, first)
    if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
        return _of_mappings(rows, schema)
    raise BadCall(
        f"rows are a {type(rows).__name__}; give a pyarrow Table or RecordBatch, a list of dicts, "
        "or a pandas DataFrame",
        code="bad_rows",
    )


def ipc_bytes(rows: pa.RecordBatch | pa.Table) -> bytes:
    """One Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return bytes(sink.getvalue())


def ipc_batches(body: bytes) -> Iterator[pa.RecordBatch]:
    """The record batches of one Arrow IPC stream that hold rows, in order."""
    with pa.ipc.open_stream(body) as reader:
        for batch in reader:
            if batch.num_rows:
                yield batch


def _of_mappings(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    # from_pylist would leave out a key that is not in the schema without a word.
    unknown = sorted({str(name) for row in rows for name in row if name not in schema.names})
    if unknown:
        raise BadCall(
            f"the stream has no column {', '.join(unknown)}; it has {', '.join(schema.names)}",
            code="rows_do_not_fit",
        )
    try:
        return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        columns = ", ".join(f"{field.name} {field.type}" for field in schema)
        raise BadCall(
            f"the rows do not fit ({columns}): {error}; change the values, or cast them first",
            code="rows_do_not_fit",
        ) from error
