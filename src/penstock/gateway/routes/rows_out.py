"""The route of rows on their way out: a page of Arrow or of JSON lines, held while it is empty."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
from aiohttp import web

from penstock.gateway.context import Gateway, gateway_of
from penstock.gateway.decode import ARROW, JSON_LINES
from penstock.gateway.encode import arrow_to_lines, sent
from penstock.gateway.parse import bad_request, number_in, stream_in_path
from penstock.log.reading.row_pages import RowPage, asked_range, empty_page, row_page
from penstock.log.reading.visible import Cursor, Range, latest
from penstock.log.state import StreamRecord
from penstock.model.ids import Lsn

_CURSOR = re.compile(r"(\d{1,18}):(\d{1,9})")


async def fetch_rows(request: web.Request) -> web.StreamResponse:
    """`GET /v1/streams/S/rows`: one page; held while empty, if asked and the end is open."""
    gateway = gateway_of(request)
    settings = gateway.settings
    wait_ms = number_in(request, "wait_ms", 0) or 0
    wished = min(number_in(request, "bytes") or settings.page_bytes, settings.page_bytes_max)
    as_json = JSON_LINES in request.headers.get("Accept", "")
    asked, is_open = _asked(request, gateway)
    schema = _columns(request, gateway, asked.stream)
    with (
        gateway.held.watch([asked.stream.name], gateway.hold_s(wait_ms)) as watch,
        gateway.page_memory.held(0) as room,
    ):
        while True:
            if is_open:
                asked = replace(asked, until=gateway.read(latest, asked.stream))
            if asked.until > asked.after or not is_open:
                size = gateway.page_memory.page_bytes(wished)
                room.resize(size)
                page = await gateway.look_up(_page, gateway, asked, schema, size, as_json)
                room.resize(len(page.body))
                if page.entries or not is_open:
                    break
            if not wait_ms or not await watch.wait():
                page = empty_page(schema)
                page = page._replace(body=b"") if as_json else page
                break
        headers = {"Penstock-Position": str(asked.until)}
        if page.cursor is not None:
            headers["Penstock-Cursor"] = str(page.cursor)
        return await sent(request, page.body, JSON_LINES if as_json else ARROW, headers)


def _page(gateway: Gateway, asked: Range, schema: pa.Schema, size: int, as_json: bool) -> RowPage:
    entries_max = gateway.settings.page_entries_max
    page = gateway.read(row_page, gateway.schemas, asked, schema, size, entries_max)
    return page._replace(body=arrow_to_lines(page.body)) if as_json else page


def _asked(request: web.Request, gateway: Gateway) -> tuple[Range, bool]:
    """What is asked for, and whether its end is open (the latest, whatever that is)."""
    until = number_in(request, "until")
    asked = gateway.read(
        asked_range,
        stream_in_path(request),
        number_in(request, "after"),
        until,
        number_in(request, "substream"),
        _cursor(request, until),
    )
    return asked, until is None


def _cursor(request: web.Request, until: int | None) -> Cursor | None:
    text = request.query.get("cursor")
    if text is None:
        return None
    if until is None:
        raise bad_request("a cursor goes with 'until', the Penstock-Position it came with; add it")
    parts = _CURSOR.fullmatch(text)
    if parts is None:
        raise bad_request(f"cursor is {text!r}, and must be a Penstock-Cursor of the same 'after'")
    return Cursor(Lsn(int(parts[1])), int(parts[2]))


def _columns(request: web.Request, gateway: Gateway, stream: StreamRecord) -> pa.Schema:
    """The stream's columns, or the first ones, if the reader knows no more of them."""
    schema = gateway.schemas.current(stream)
    count = number_in(request, "columns", len(schema))
    if count is None or not 1 <= count <= len(schema):
        raise bad_request(
            f"columns is {count}, and the stream {stream.name!r} has {len(schema)}: ask for the "
            "first of them, or leave it out for all"
        )
    return schema if count == len(schema) else pa.schema(list(schema)[:count])
