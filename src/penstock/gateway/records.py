"""Generic records over HTTP: appended with any tags, read by one."""

from __future__ import annotations

import base64
from itertools import islice

from aiohttp import web

from penstock.errors import BadCall
from penstock.gateway.bodies import bad_request, number_in, short_text
from penstock.gateway.ingest import read_body
from penstock.gateway.state import gateway_of
from penstock.log.contract import AppendRecord, Entry
from penstock.model.ids import Lsn

RECORDS_MAX = 256
"""In one answer."""


async def append_record(request: web.Request) -> web.Response:
    """`POST /v1/records?tags=a,b`: the body under all of the tags, durable when answered.

    With `expect_tag` and `expect` it is refused as a `conflict` unless that is the tag's last
    place; with `producer` and `seq` it may be sent again.
    """
    gateway = gateway_of(request)
    tags = tuple(tag for tag in request.query.get("tags", "").split(",") if tag)
    expected, at = request.query.get("expect_tag"), number_in(request, "expect")
    if (expected is None) != (at is None):
        raise bad_request("expect_tag and expect go together; send both or none")
    producer, seq = request.query.get("producer"), number_in(request, "seq")
    if (producer is None) != (seq is None):
        raise bad_request("producer and seq go together; send both or none")
    operation = AppendRecord(
        tags,
        await read_body(request, gateway),
        None if expected is None or at is None else (expected, Lsn(at)),
        None if producer is None else short_text(producer, "producer"),
        None,
        seq,
    )
    return web.json_response({"lsn": await gateway.run(operation)})


async def list_records(request: web.Request) -> web.Response:
    """`GET /v1/records?tag=a&after=0`: records of a tag in order; `more` if the page is full."""
    gateway = gateway_of(request)
    tag = request.query.get("tag", "")
    if not tag:
        raise BadCall("name a tag: GET /v1/records?tag=a", code="bad_tag")
    after = number_in(request, "after") or 0

    def page() -> list[Entry]:
        with gateway.log.reading() as view:
            lsns = islice(view.tagged(tag, after + 1), RECORDS_MAX)
            return [entry for lsn in lsns if (entry := view.entry(lsn)) is not None]

    found = await gateway.in_thread(page)
    records = [
        {
            "lsn": entry.head.lsn,
            "producer": entry.head.producer,
            "seq": entry.head.seq,
            "payload": base64.b64encode(entry.payload).decode("ascii"),
        }
        for entry in found
        if entry.head.kind == "record"
    ]
    return web.json_response({"records": records, "more": len(found) == RECORDS_MAX})
