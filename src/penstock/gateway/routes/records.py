"""Generic records over HTTP: appended with any tags, read by one."""

from __future__ import annotations

import base64
from itertools import islice

from aiohttp import web

from penstock.errors import BadCall
from penstock.gateway.bodies import TrimBody, bad_request, body_of, number_in, short_text
from penstock.gateway.context import gateway_of
from penstock.gateway.routes.rows_in import read_body
from penstock.log.contract import Entry
from penstock.log.decide.records import OWN_TAGS
from penstock.log.operations import AppendRecord, Trimmed, TrimTag
from penstock.log.reading.subscription import check_whole
from penstock.log.view import View
from penstock.model.ids import Lsn

RECORDS_MAX = 256
"""In one answer."""
TRIMMED_MAX = 10_000
"""By one call: everybody's appends wait for it."""


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


async def trim_records(request: web.Request) -> web.Response:
    """`POST /v1/records/trim?tag=a`: remove the records of a tag up to a place, as many as one
    call may; `more` if there are others. Up to 0 it removes none, and says where the tag begins."""
    gateway = gateway_of(request)
    tag = _tag_in(request)
    asked = Lsn((await body_of(request, TrimBody)).until)

    def bounded() -> tuple[Lsn, bool]:
        with gateway.log.reading() as view:
            return trim_bound(view, tag, asked, TRIMMED_MAX)

    def gone() -> Lsn:
        with gateway.log.reading() as view:
            return view.trimmed(tag)

    until, has_more = await gateway.in_thread(bounded)
    done: Trimmed = await gateway.run(TrimTag(tag, until))
    until = await gateway.in_thread(gone)
    return web.json_response({"until": until, "entries": done.entries, "more": has_more})


def trim_bound(view: View, tag: str, until: Lsn, count_max: int) -> tuple[Lsn, bool]:
    """Up to where one call trims a tag that is to be trimmed so far, and whether that is less."""
    lsns = list(islice(view.tagged(tag), count_max + 1))
    has_more = len(lsns) > count_max and lsns[-1] <= until
    return (lsns[-2] if has_more else until), has_more


async def list_records(request: web.Request) -> web.Response:
    """`GET /v1/records?tag=a&after=0`: records of a tag in order; `more` if the page is full.

    Without `after` from the first one there is; after a place where some are gone, `trimmed`.
    """
    gateway = gateway_of(request)
    tag = _tag_in(request)
    after = number_in(request, "after")

    def page() -> list[Entry]:
        with gateway.log.reading() as view:
            if after is not None:
                check_whole(view, (tag,), after)
            lsns = islice(view.tagged(tag, (after or 0) + 1), RECORDS_MAX)
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
    ]
    return web.json_response({"records": records, "more": len(found) == RECORDS_MAX})


def _tag_in(request: web.Request) -> str:
    tag = request.query.get("tag", "")
    if not tag or tag.startswith(OWN_TAGS):
        what = f"name a tag of records: {request.method} {request.path}?tag=a"
        raise BadCall(what, code="bad_tag")
    return tag
