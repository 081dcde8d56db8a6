"""Rows of a stream as pages of Arrow: stored messages between a schema and an end, decoded only
where columns were added since they were stored."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from penstock.errors import BadCall
from penstock.log.decide.need import check_substream, need_stream
from penstock.log.reading.schemas import StreamSchemas
from penstock.log.reading.visible import (
    Cursor,
    Range,
    Stored,
    check_position,
    current,
    earliest,
    latest,
    page,
)
from penstock.log.state import StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn, StreamName, Substream
from penstock.model.schema import reshape

END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class RowPage(NamedTuple):
    """The body of one page, where the next begins if there is one, and how many entries it has."""

    body: bytes
    cursor: Cursor | None
    entries: int


def asked_range(
    view: StoreView,
    stream: StreamName,
    after: int | None,
    until: int | None,
    substream: int | None,
    cursor: Cursor | None,
) -> Range:
    """The rows asked for, checked: from the earliest and to the latest position, if not given."""
    record = need_stream(view, stream)
    start = earliest(view, record) if after is None else Lsn(after)
    if cursor is not None and cursor.commit <= start:
        raise BadCall(
            f"cursor is '{cursor}', and must be a Penstock-Cursor of the same 'after'",
            code="bad_request",
        )
    if substream is not None:
        check_substream(record, substream)
    check_position(view, record, start)
    if until is not None:
        check_position(view, record, Lsn(until))
    end = latest(view, record) if until is None else Lsn(until)
    return Range(record, start, end, None if substream is None else Substream(substream), cursor)


def row_page(
    view: StoreView,
    schemas: StreamSchemas,
    asked: Range,
    schema: pa.Schema,
    bytes_max: int,
    entries_max: int,
) -> RowPage:
    """One page of the range as an Arrow IPC stream with the columns of `schema`."""
    # Rows may be of a version that came after the request.
    stream = current(view, asked.stream)
    stored, cursor = page(view, asked, bytes_max, entries_max)
    payloads = (_shaped(schemas, stream, each, schema) for each in stored)
    return RowPage(b"".join((schema.serialize(), *payloads, END_OF_STREAM)), cursor, len(stored))


def empty_page(schema: pa.Schema) -> RowPage:
    """A page without rows."""
    return RowPage(b"".join((schema.serialize(), END_OF_STREAM)), None, 0)


def _shaped(
    schemas: StreamSchemas, stream: StreamRecord, stored: Stored, schema: pa.Schema
) -> bytes | memoryview:
    """A payload with the columns asked for; as it is stored, if it has these."""
    known = schemas.version(stream, stored.version)
    if len(known) == len(schema):
        return stored.payload
    rows = pa.ipc.read_record_batch(pa.py_buffer(stored.payload), known)
    return memoryview(reshape(rows, schema).serialize())
