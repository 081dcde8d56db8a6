"""Rows on their way in: decoded, routed, cut to size and serialised, then appended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

import pyarrow as pa
import xxhash
from aiohttp import web

from penstock.errors import BadCall, TryAgain
from penstock.gateway import decode
from penstock.gateway.bodies import bad_request, need_number, number_in, query_id, short_text
from penstock.gateway.context import Gateway, gateway_of
from penstock.log.decide.need import check_substream
from penstock.log.operations import Appended, AppendPending, AppendRows, Draft, Shape
from penstock.log.state import StreamRecord
from penstock.model.ids import BatchId, Instance, Substream
from penstock.model.marker import Stamp
from penstock.model.routing import check_key, split
from penstock.model.schema import fit, same_shape, to_ddl

T = TypeVar("T")
Routed = list[tuple[Substream, pa.RecordBatch]]


async def append_rows(request: web.Request) -> web.Response:
    """`POST /v1/streams/S/rows`: durable and visible when answered."""
    gateway = gateway_of(request)
    stream = gateway.stream_in(request)
    producer, sequence = _producer(request)
    substream = number_in(request, "substream")
    if substream is not None:
        check_substream(stream, substream)
    key = _key(request, stream, gateway)
    content_type = request.content_type
    async with gateway.bodies:
        body = await read_body(request, gateway)
        place = gateway.next_turn(stream) if substream is None and not key else substream

        async def append(now: StreamRecord) -> Appended:
            drafts = await gateway.in_thread(
                _prepare_rows, body, content_type, gateway, now, place, key
            )
            shape = _shape(now, None if place is not None else now.substreams)
            operation = AppendRows(now.name, drafts, producer, sequence, shape)
            return cast("Appended", await gateway.run(operation))

        answer = await _until_unaltered(gateway, stream, append)
    return web.json_response(
        {
            "position": answer.position,
            "rows": answer.rows,
            "entries": answer.entries,
            "duplicate": answer.duplicate,
        }
    )


async def append_entries(request: web.Request) -> web.Response:
    """`POST /v1/streams/S/entries`: durable when answered, visible once a marker names them."""
    gateway = gateway_of(request)
    stream = gateway.stream_in(request)
    stamp = Stamp(
        query_id(request.query.get("query", "")),
        Instance(need_number(request, "instance")),
        BatchId(need_number(request, "batch")),
        need_number(request, "partition"),
        need_number(request, "attempt"),
    )
    substreams = _substreams(request, stream)
    async with gateway.bodies:
        body = await read_body(request, gateway)
        drafts = await gateway.in_thread(_prepare_entries, body, gateway, stream, substreams)
        del body
        # A task divides keys among as many substreams as there were when its query started.
        shape = _shape(stream, None)
        lsns = await gateway.run(AppendPending(stream.name, stamp, drafts, shape))
    return web.json_response({"entries": lsns})


def _shape(stream: StreamRecord, routed_by: int | None) -> Shape:
    return Shape(stream.id, len(stream.versions), routed_by)


async def _until_unaltered(
    gateway: Gateway, stream: StreamRecord, append: Callable[[StreamRecord], Awaitable[T]]
) -> T:
    """Prepare and append; once more, if the stream was altered between the two."""
    try:
        return await append(stream)
    except TryAgain as error:
        if error.code != "stream_altered":
            raise
        return await append(gateway.stream(stream.name))


async def read_body(request: web.Request, gateway: Gateway) -> bytes:
    """The whole body; one over the bound is refused, by its length before it is read."""
    bound = gateway.settings.request_bytes_max
    if (request.content_length or 0) > bound:
        raise request_too_large(bound)
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise request_too_large(bound) from None
    except asyncio.IncompleteReadError:
        raise bad_request("the body ended before its length; send it again") from None


def request_too_large(bound: int) -> BadCall:
    return BadCall(
        f"the request is larger than {bound} bytes; send it in parts",
        code="request_too_large",
        status=413,
    )


def _producer(request: web.Request) -> tuple[str | None, int | None]:
    producer = request.headers.get("Penstock-Producer")
    text = request.headers.get("Penstock-Sequence")
    if (producer is None) != (text is None):
        raise bad_request(
            "the headers Penstock-Producer and Penstock-Sequence go together; send both or none"
        )
    if producer is None or text is None:
        return None, None
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise bad_request(
            f"the header Penstock-Sequence is {text!r}, and must be a number of up to 18 digits"
        )
    return short_text(producer, "the header Penstock-Producer"), int(text)


def _key(request: web.Request, stream: StreamRecord, gateway: Gateway) -> tuple[str, ...]:
    text = request.query.get("key")
    key = stream.key if text is None else tuple(name.strip() for name in text.split(","))
    check_key(gateway.schema(stream), key)
    return key


def _substreams(request: web.Request, stream: StreamRecord) -> list[Substream]:
    text = request.query.get("substreams", "")
    parts = text.split(",") if text else []
    if not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        raise bad_request(f"substreams is {text!r}, and must be numbers such as 0,1,0")
    for part in parts:
        check_substream(stream, int(part))
    return [Substream(int(part)) for part in parts]


def _prepare_rows(
    body: bytes,
    content_type: str,
    gateway: Gateway,
    stream: StreamRecord,
    substream: int | None,
    key: Sequence[str],
) -> tuple[Draft, ...]:
    schema, first = gateway.schema(stream), gateway.version(stream, 0)
    rows = decode.rows_from(body, content_type, schema, first)
    if rows.num_rows == 0:
        return ()
    routed: Routed
    if substream is not None:
        routed = [(Substream(substream), rows)]
    else:
        routed = split(rows, key, stream.substreams)
    bound = gateway.settings.entry_bytes_max
    return tuple(draft for place, part in routed for draft in cut(place, part, bound))


def cut(substream: Substream, rows: pa.RecordBatch, bytes_max: int) -> list[Draft]:
    """The rows as entries of at most `bytes_max`, in order; halved until they are."""
    if rows.num_rows > 1 and rows.nbytes > 2 * bytes_max:
        payload = None
    else:
        payload = rows.serialize().to_pybytes()
        if len(payload) <= bytes_max:
            return [_draft(substream, rows, payload)]
    if rows.num_rows == 1:
        raise entry_too_large(len(payload or b""), bytes_max, "a row")
    half = rows.num_rows // 2
    return [
        *cut(substream, rows.slice(0, half), bytes_max),
        *cut(substream, rows.slice(half), bytes_max),
    ]


def entry_too_large(size: int, bound: int, what: str) -> BadCall:
    return BadCall(
        f"{what} takes {size} bytes as an entry, and an entry has at most {bound}; send less at "
        "once, or raise entry_bytes_max, and max_payload of the "
        "servers where the log is in JetStream",
        code="entry_too_large",
        status=413,
    )


def _draft(substream: Substream, rows: pa.RecordBatch, payload: bytes) -> Draft:
    return Draft(substream, payload, rows.num_rows, xxhash.xxh3_64_intdigest(payload))


def _prepare_entries(
    body: bytes, gateway: Gateway, stream: StreamRecord, substreams: Sequence[Substream]
) -> tuple[Draft, ...]:
    schema = gateway.schema(stream)
    found, batches = decode.arrow_batches(body)
    versions = range(len(stream.versions) + 1)
    if not any(same_shape(found, gateway.version(stream, version)) for version in versions):
        raise BadCall(
            f"the rows are {', '.join(f'{f.name} {f.type}' for f in found)}, and the stream "
            f"{stream.name!r} is {to_ddl(schema)}; send exactly these columns in this order",
            code="rows_do_not_fit",
        )
    if len(batches) != len(substreams):
        raise bad_request(
            f"the body has {len(batches)} record batches and substreams names {len(substreams)}; "
            "name one for each"
        )
    bound = gateway.settings.entry_bytes_max
    drafts = []
    for substream, batch in zip(substreams, batches, strict=True):
        rows = fit(batch, schema, gateway.version(stream, 0))
        payload = rows.serialize().to_pybytes()
        if len(payload) > bound:
            raise entry_too_large(len(payload), bound, "a record batch")
        drafts.append(_draft(substream, rows, payload))
    return tuple(drafts)
