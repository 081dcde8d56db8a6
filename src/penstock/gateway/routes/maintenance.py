"""Routes that look after streams and queries: alter, trim, delete, reset, collect, back up."""

from __future__ import annotations

import asyncio
import logging
import os

from aiohttp import web

from penstock.gateway.bodies import AlterBody, TrimBody, bad_request, body_of, query_id
from penstock.gateway.context import Gateway, gateway_of
from penstock.gateway.routes.queries import described, json_answer
from penstock.log.operations import (
    AlterStream,
    DeleteQuery,
    DeleteStream,
    ResetQuery,
    Taken,
    Trimmed,
    TrimStream,
)
from penstock.log.state import Retention, StreamRecord
from penstock.model.ids import Lsn
from penstock.model.schema import added, canonical, from_base64, schema_of

_LOG = logging.getLogger("penstock.gateway")
COPY_BYTES = 1 << 20


async def alter_stream(request: web.Request) -> web.Response:
    """`PATCH /v1/streams/S`: columns at the end, more substreams, how long rows are kept."""
    gateway = gateway_of(request)
    stream = gateway.stream_in(request)
    body = await body_of(request, AlterBody)
    operation = AlterStream(
        stream.name, _columns(gateway, stream, body), body.substreams, _retention(stream, body)
    )
    altered: StreamRecord = await gateway.run(operation)
    with gateway.log.reading() as view:
        return json_answer(described(gateway, view, altered))


def _columns(gateway: Gateway, stream: StreamRecord, body: AlterBody) -> bytes | None:
    """The new schema, from the columns to add or as a whole."""
    given = [each for each in (body.add, body.schema, body.ddl) if each is not None]
    if len(given) > 1:
        raise bad_request("give one of 'add', 'schema' and 'ddl', not several")
    if not given:
        return None
    if body.add is not None:
        schema = added(gateway.schema(stream), schema_of(body.add))
    else:
        schema = schema_of(body.ddl) if body.ddl is not None else from_base64(body.schema or "")
    return bytes(canonical(schema).serialize().to_pybytes())


def _retention(stream: StreamRecord, body: AlterBody) -> Retention | None:
    """The bounds given in place of those there were; 0 lifts one."""
    if body.age_ms_max is None and body.bytes_max is None:
        return None
    kept = stream.retention
    age = kept.age_ms_max if body.age_ms_max is None else body.age_ms_max
    size = kept.bytes_max if body.bytes_max is None else body.bytes_max
    return Retention(age or None, size or None)


async def delete_stream(request: web.Request) -> web.Response:
    """`DELETE /v1/streams/S?force=1`; what it held is swept away behind."""
    gateway = gateway_of(request)
    stream = gateway.stream_in(request)
    force = request.query.get("force", "0")
    if force not in ("0", "1"):
        raise bad_request(f"force is {force!r}, and must be 0 or 1")
    await gateway.run(DeleteStream(stream.name, force == "1"))
    return json_answer({"deleted": stream.name})


async def trim_stream(request: web.Request) -> web.Response:
    """`POST /v1/streams/S/trim`: now, up to a position; refused if somebody needs more."""
    gateway = gateway_of(request)
    stream = gateway.stream_in(request)
    until = Lsn((await body_of(request, TrimBody)).until)
    away_ms = gateway.settings.consumer_away_ms_max
    done: Trimmed = await gateway.run(TrimStream(stream.name, until, away_ms))
    return json_answer(done)


async def reset_query(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/reset`: fence it, and let it begin at batch 0 again."""
    gateway = gateway_of(request)
    query = query_id(request.match_info["query"])
    run = f"reset-{gateway.clock.wall_ms()}-{os.urandom(4).hex()}"
    taken: Taken = await gateway.run(ResetQuery(query, run))
    return json_answer({"instance": taken.instance})


async def delete_query(request: web.Request) -> web.Response:
    """`DELETE /v1/queries/Q`."""
    gateway = gateway_of(request)
    query = query_id(request.match_info["query"])
    await gateway.run(DeleteQuery(query))
    return json_answer({"deleted": query})


async def collect(request: web.Request) -> web.Response:
    """`POST /v1/collect`: trim what nobody needs now, without waiting for the next time."""
    gateway = gateway_of(request)
    done = await gateway.in_thread(gateway.collector.collect)
    return json_answer({"entries": done.entries, "payload_bytes": done.payload_bytes})


async def back_up(request: web.Request) -> web.StreamResponse:
    """`GET /v1/backup`: the store's file as it is at one moment, while appends go on.

    Before a log in JetStream that is this server's index, which holds everything it has answered.
    While it is read, what is trimmed is not reused: a slow reader makes the file grow.
    """
    gateway = gateway_of(request)
    answer = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
    await answer.prepare(request)
    source, sink = os.pipe()
    copying = asyncio.ensure_future(gateway.in_thread(_copy, gateway, sink))
    try:
        while chunk := await asyncio.to_thread(os.read, source, COPY_BYTES):
            await answer.write(chunk)
    finally:
        # Who copies must not wait for a reader that has gone.
        os.close(source)
        await asyncio.wait([copying])
    if copying.exception() is not None:
        _LOG.error("a backup failed", exc_info=copying.exception())
        if request.transport is not None:
            request.transport.abort()  # half a file must not look like a whole one
        raise ConnectionResetError
    await answer.write_eof()
    return answer


def _copy(gateway: Gateway, sink: int) -> None:
    try:
        gateway.log.copy_to(sink)
    finally:
        os.close(sink)
