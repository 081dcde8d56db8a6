"""Writes rows: a table for a person, JSON lines for a pipe, or what --format says."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
from rich.console import Console
from rich.table import Table

ROWS_SHOWN_MAX = 200


@contextmanager
def output(path: Path | None) -> Iterator[BinaryIO]:
    """The file named, or standard output."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with path.open("wb") as file:
            yield file


def write(out: BinaryIO, kind: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Writes arrow, csv or json as the batches come; returns the number of rows."""
    rows = 0
    if kind == "json":
        for batch in batches:
            rows += batch.num_rows
            out.write(json_lines(batch))
            out.flush()
        return rows
    opened = pa.ipc.new_stream if kind == "arrow" else pyarrow.csv.CSVWriter
    with opened(out, schema) as writer:
        for batch in batches:
            rows += batch.num_rows
            writer.write_batch(batch)
    return rows


def json_lines(rows: pa.RecordBatch | pa.Table) -> bytes:
    """One JSON object a row, in the form an append of JSON lines takes."""
    return "".join(
        json.dumps(row, default=_plain, ensure_ascii=False) + "\n" for row in rows.to_pylist()
    ).encode("utf-8")


def show(console: Console, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """The first rows as a table, and how many there are."""
    table = Table(show_edge=False, pad_edge=False)
    for field in schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(field.name, justify="right" if number else "left", overflow="fold")
    count = 0
    for batch in batches:
        for row in batch.slice(0, max(0, ROWS_SHOWN_MAX - count)).to_pylist():
            table.add_row(*(_cell(value) for value in row.values()))
        count += batch.num_rows
    console.print(table)
    more = f", the first {ROWS_SHOWN_MAX:,} shown" if count > ROWS_SHOWN_MAX else ""
    console.print(f"{count:,} row{'' if count == 1 else 's'}{more}", style="dim", highlight=False)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (dict, list)):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    return str(_plain(value)) if not isinstance(value, str) else value


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, (Decimal, timedelta)):
        return str(value)
    return value
