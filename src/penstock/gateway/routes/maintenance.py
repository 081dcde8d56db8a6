"""Routes of the server itself: whether and how it is there, collect, back up."""

from __future__ import annotations

import asyncio
import logging
import os
from importlib import metadata

from aiohttp import web

from penstock.gateway.context import Gateway, gateway_of
from penstock.gateway.encode import json_answer
from penstock.log.reading.visible import log_end
from penstock.log.retention.due import away
from penstock.model.answers import Collected, Health, ServerDescription
from penstock.model.protocol import PROTOCOL

COPY_BYTES = 1 << 20
_LOG = logging.getLogger("penstock.gateway")


def version() -> str:
    """The installed version; a source tree that is not installed says so."""
    try:
        return metadata.version("penstock")
    except metadata.PackageNotFoundError:
        return "0+source"


async def health(_: web.Request) -> web.Response:
    """`GET /v1/health`."""
    return json_answer(Health(version(), PROTOCOL))


async def server(request: web.Request) -> web.Response:
    """`GET /v1/server`."""
    gateway = gateway_of(request)
    now_ms = gateway.read(gateway.collector.now_ms)
    return json_answer(
        ServerDescription(
            version=version(),
            protocol=PROTOCOL,
            data=str(gateway.log.folder.path.absolute()),
            pid=os.getpid(),
            started_at_ms=gateway.started_at_ms,
            now_ms=gateway.clock.wall_ms(),
            consumers_away=len(gateway.read(away, now_ms, gateway.settings)),
            latest=gateway.read(log_end),
        )
    )


async def collect(request: web.Request) -> web.Response:
    """`POST /v1/collect`: trim what nobody needs now, without waiting for the next time."""
    gateway = gateway_of(request)
    trimmed = await gateway.in_thread(gateway.collector.collect)
    return json_answer(Collected(trimmed.entries, trimmed.payload_bytes))


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
