"""Routes of the server itself: whether and how it is there, collect, back up."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from pathlib import Path

from aiohttp import web

from penstock.errors import TryAgain
from penstock.gateway.context import BACKUPS_MAX, Gateway, gateway_of
from penstock.gateway.encode import json_answer, json_bytes_answer
from penstock.gateway.server_description import describe, version
from penstock.model.answers import Collected, Health
from penstock.model.protocol import PROTOCOL

COPY_BYTES = 1 << 20
COPY_LOOK_S = 0.02
ROOM_LEFT_BYTES = 64 << 20
_LOG = logging.getLogger("penstock.gateway")


async def health(_: web.Request) -> web.Response:
    """`GET /v1/health`."""
    return json_answer(Health(version(), PROTOCOL))


async def server(request: web.Request) -> web.Response:
    """`GET /v1/server`."""
    gateway = gateway_of(request)
    return json_bytes_answer(await gateway.look_up_json(describe, gateway))


async def collect(request: web.Request) -> web.Response:
    """`POST /v1/collect`: trim what nobody needs now, without waiting for the next time."""
    gateway = gateway_of(request)
    trimmed = await gateway.upkeep(gateway.collector.collect)
    return json_answer(Collected(trimmed.entries, trimmed.payload_bytes))


async def back_up(request: web.Request) -> web.StreamResponse:
    """`GET /v1/backup`: the store's file as it is at one moment, while appends go on.

    Before a log in JetStream that is this server's index, which holds everything it has answered.
    It is copied to a file without a name beside the log and sent from there: the store is looked
    into for as long as the disk takes, however slow its reader.
    """
    gateway = gateway_of(request)
    folder = gateway.log.folder
    if gateway.backups >= BACKUPS_MAX:
        raise TryAgain(
            f"{gateway.backups} backups are being made, which is the bound; try again when one is "
            "done",
            code="busy",
        )
    check_room(folder.store / "data.mdb")
    gateway.backups += 1
    try:
        with tempfile.TemporaryFile(dir=folder.path) as copy:
            return await _send_while_copied(request, gateway, copy.fileno())
    finally:
        gateway.backups -= 1


def check_room(data: Path) -> None:
    """Refuse a copy that would leave the disk of the log without room for what is appended."""
    space = os.statvfs(data.parent)
    needed = data.stat().st_size + ROOM_LEFT_BYTES
    if space.f_bavail * space.f_frsize < needed:
        raise TryAgain(
            f"a backup needs {needed} bytes free beside the log while it is sent, and its disk has "
            f"{space.f_bavail * space.f_frsize}; make room and try again",
            code="storage_full",
            status=507,
        )


async def _send_while_copied(
    request: web.Request, gateway: Gateway, copy: int
) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
    await answer.prepare(request)
    copying = asyncio.ensure_future(gateway.upkeep(gateway.log.copy_to, copy))
    try:
        sent = 0
        while True:
            is_whole = copying.done()
            chunk = await gateway.look_up(os.pread, copy, COPY_BYTES, sent)
            sent += len(chunk)
            if chunk:
                await answer.write(chunk)
            elif is_whole:
                break
            else:
                await asyncio.wait([copying], timeout=COPY_LOOK_S)
    finally:
        await asyncio.wait([copying])
    if copying.exception() is not None:
        _LOG.error("a backup failed", exc_info=copying.exception())
        if request.transport is not None:
            request.transport.abort()  # half a file must not look like a whole one
        raise ConnectionResetError
    await answer.write_eof()
    return answer
