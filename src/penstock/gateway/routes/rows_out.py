"""Rows on their way out: stored messages between a schema and an end, never decoded for Arrow."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
from aiohttp import web

from penstock.gateway.bodies import bad_request, number_in
from penstock.gateway.context import Gateway, gateway_of
from penstock.gateway.decode import ARROW, JSON_LINES
from penstock.gateway.json_rows import encode_lines
from penstock.log.decide.need import check_substream
from penstock.log.reading.visible import (
    Cursor,
    Range,
    Stored,
    check_position,
    current,
    earliest,
    latest,
    page,
    position_at,
)
from penstock.log.state import StreamRecord
from penstock.model.ids import Lsn, Substream
from penstock.model.schema import reshape

END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_CURSOR = re.compile(r"(\d{1,18}):(\d{1,9})")


async def fetch_rows(request: web.Request) -> web.Response:
    """`GET /v1/streams/S/rows`: one page; held while empty, if asked and the end is open."""
    gateway = gateway_of(request)
    wait_ms = number_in(request, "wait_ms", 0) or 0
    size = min(
        number_in(request, "bytes") or gateway.settings.page_bytes, gateway.settings.page_bytes_max
    )
    as_json = JSON_LINES in request.headers.get("Accept", "")
    asked, is_open = _range(request, gateway)
    stream = asked.stream
    schema = _columns(request, gateway, stream)
    with gateway.held.watch([stream.name], gateway.hold_s(wait_ms)) as watch:
        while True:
            if is_open:
                asked = replace(asked, until=_latest(gateway, asked))
            if asked.until > asked.after or not is_open:
                body, cursor, entries = await gateway.in_thread(
                    build_page, gateway, asked, size, schema, as_json
                )
                if entries or not is_open:
                    break
            if not wait_ms or not await watch.wait():
                body, cursor = _empty(schema, as_json), None
                break
    headers = {"Penstock-Position": str(asked.until)}
    if cursor is not None:
        headers["Penstock-Cursor"] = str(cursor)
    return web.Response(body=body, headers=headers, content_type=JSON_LINES if as_json else ARROW)


def _latest(gateway: Gateway, asked: Range) -> Lsn:
    with gateway.log.reading() as view:
        return latest(view, asked.stream)


def _range(request: web.Request, gateway: Gateway) -> tuple[Range, bool]:
    """What is asked for, and whether its end is open (the latest, whatever that is)."""
    given = number_in(request, "after")
    until = number_in(request, "until")
    substream = number_in(request, "substream")
    with gateway.log.reading() as view:
        stream = gateway.stream_in(request, view)
        after = earliest(view, stream) if given is None else Lsn(given)
        cursor = _cursor(request, after, until)
        if substream is not None:
            check_substream(stream, substream)
        check_position(view, stream, after)
        if until is not None:
            check_position(view, stream, Lsn(until))
        end = latest(view, stream) if until is None else Lsn(until)
    place = None if substream is None else Substream(substream)
    return Range(stream, after, end, place, cursor), until is None


def _columns(request: web.Request, gateway: Gateway, stream: StreamRecord) -> pa.Schema:
    """The stream's columns, or the first ones, if the reader knows no more of them."""
    schema = gateway.schema(stream)
    count = number_in(request, "columns", len(schema))
    if count is None or not 1 <= count <= len(schema):
        raise bad_request(
            f"columns is {count}, and the stream {stream.name!r} has {len(schema)}: ask for the "
            "first of them, or leave it out for all"
        )
    return schema if count == len(schema) else pa.schema(list(schema)[:count])


def _cursor(request: web.Request, after: Lsn, until: int | None) -> Cursor | None:
    text = request.query.get("cursor")
    if text is None:
        return None
    if until is None:
        raise bad_request("a cursor goes with 'until', the Penstock-Position it came with; add it")
    found = _CURSOR.fullmatch(text)
    if found is None or int(found[1]) <= after:
        raise bad_request(f"cursor is {text!r}, and must be a Penstock-Cursor of the same 'after'")
    return Cursor(Lsn(int(found[1])), int(found[2]))


def build_page(
    gateway: Gateway, asked: Range, size: int, schema: pa.Schema, as_json: bool
) -> tuple[bytes, Cursor | None, int]:
    """The body of one page, where the next begins, and how many entries it has."""
    with gateway.log.reading() as view:
        # Rows may be of a version that came after the request.
        stream = current(view, asked.stream)
        found, cursor = page(view, asked, size, gateway.settings.page_entries_max)
        payloads = (_shaped(gateway, stream, each, schema) for each in found)
        body = b"".join((schema.serialize(), *payloads, END_OF_STREAM))
    if as_json:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            body = encode_lines(list(reader))
    return body, cursor, len(found)


def _shaped(
    gateway: Gateway, stream: StreamRecord, stored: Stored, schema: pa.Schema
) -> bytes | memoryview:
    """A payload with the columns asked for; as it is stored, if it has these."""
    known = gateway.version(stream, stored.version)
    if len(known) == len(schema):
        return stored.payload
    rows = pa.ipc.read_record_batch(pa.py_buffer(stored.payload), known)
    return memoryview(reshape(rows, schema).serialize())


def _empty(schema: pa.Schema, as_json: bool) -> bytes:
    return b"" if as_json else b"".join((schema.serialize(), END_OF_STREAM))


async def find_position(request: web.Request) -> web.Response:
    """`GET /v1/streams/S/position`: by name or by time."""
    gateway = gateway_of(request)
    at, time_ms = request.query.get("at"), number_in(request, "time_ms")
    if (at is None) == (time_ms is None) or at not in (None, "earliest", "latest"):
        raise bad_request("say at=earliest, at=latest or time_ms=…, one of them")
    with gateway.log.reading() as view:
        stream = gateway.stream_in(request, view)
        if time_ms is not None:
            position = position_at(view, stream, time_ms)
        else:
            is_first = at == "earliest"
            position = earliest(view, stream) if is_first else latest(view, stream)
    return web.json_response({"position": position})
