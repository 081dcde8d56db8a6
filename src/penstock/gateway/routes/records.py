"""Routes of generic records: appended with any tags, read and trimmed by one."""

from __future__ import annotations

from aiohttp import web

from penstock.errors import BadCall
from penstock.gateway.context import gateway_of
from penstock.gateway.encode import json_answer
from penstock.gateway.json_pages import json_page
from penstock.gateway.parse import bad_request, number_in, short_text
from penstock.log.decide.records import OWN_TAGS
from penstock.log.operations import AppendRecord, Trimmed, TrimTag
from penstock.log.reading.record_pages import record_page, trim_bound, trimmed_until
from penstock.model.answers import EntryPlace, TrimmedRecords
from penstock.model.ids import Lsn
from penstock.model.requests import TrimBody

RECORDS_MAX = 256
"""In one answer, and `page_bytes` of them, but one at least."""
FEW_RECORDS = 8
FEW_BYTES = 16 << 10
TRIMMED_MAX = 10_000
"""By one call: everybody's appends wait for it."""


async def append_record(request: web.Request) -> web.Response:
    """`POST /v1/records?tags=a,b`: the body under all of the tags, durable when answered.

    With `expect_tag` and `expect` it is refused as a `conflict` unless that is the tag's last
    place; with `producer` and `seq` it may be sent again.
    """
    gateway = gateway_of(request)
    tags = tuple(tag for tag in request.query.get("tags", "").split(",") if tag)
    expect_tag, expect = request.query.get("expect_tag"), number_in(request, "expect")
    if (expect_tag is None) != (expect is None):
        raise bad_request("expect_tag and expect go together; send both or none")
    producer, seq = request.query.get("producer"), number_in(request, "seq")
    if (producer is None) != (seq is None):
        raise bad_request("producer and seq go together; send both or none")
    expected = None if expect_tag is None or expect is None else (expect_tag, Lsn(expect))
    name = None if producer is None else short_text(producer, "producer")
    async with gateway.body(request) as body:
        operation = AppendRecord(tags, body, expected, name, None, seq)
        return json_answer(EntryPlace(await gateway.run(operation)))


async def trim_records(request: web.Request) -> web.Response:
    """`POST /v1/records/trim?tag=a`: remove the records of a tag up to a place, as many as one
    call may; `more` if there are others. Up to 0 it removes none, and says where the tag begins."""
    gateway = gateway_of(request)
    tag = _tag_in(request)
    asked = Lsn((await gateway.json_body(request, TrimBody)).until)
    until, has_more = await gateway.look_up(gateway.read, trim_bound, tag, asked, TRIMMED_MAX)
    trimmed: Trimmed = await gateway.run(TrimTag(tag, until))
    gone_until = await gateway.look_up(gateway.read, trimmed_until, tag)
    return json_answer(TrimmedRecords(gone_until, trimmed.entries, has_more))


async def list_records(request: web.Request) -> web.StreamResponse:
    """`GET /v1/records?tag=a&after=0`: records of a tag in order; `more` if the page is full.

    Without `after` from the first one there is; after a place where some are gone, `trimmed`.
    """
    gateway = gateway_of(request)
    tag, after = _tag_in(request), number_in(request, "after")
    # Most tags have few records: to hand these to a thread takes longer than to look.
    await gateway.light_reads.take()
    few = gateway.read(record_page, tag, after, FEW_RECORDS, FEW_BYTES, records_min=0)
    if not few.more:
        return json_answer(few)
    return await json_page(request, record_page, tag, after, RECORDS_MAX)


def _tag_in(request: web.Request) -> str:
    tag = request.query.get("tag", "")
    if not tag or tag.startswith(OWN_TAGS):
        remedy = f"name a tag of records: {request.method} {request.path}?tag=a"
        raise BadCall(remedy, code="bad_tag")
    return tag
