"""The coordinator's HTTP face: the calls of a query's phase one, and to wait for phase two."""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from penstock.client import Client
from penstock.errors import BadCall, PenstockError, to_wire
from penstock_lab.baselines.spark_transactions.book import substreams_of
from penstock_lab.baselines.spark_transactions.coordinator import Coordinator

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except PenstockError as error:
        return web.json_response({"error": to_wire(error)}, status=error.http_status)


def make_app(coordinator: Coordinator, token: str) -> web.Application:
    """Registration, and the marker route of a log server, which prepares instead of marking."""

    async def body_of(request: web.Request) -> dict[str, object]:
        if request.headers.get("Authorization") != f"Bearer {token}":
            raise BadCall("the request carries another token", code="unauthorized", status=401)
        try:
            return msgspec.json.decode(await request.read(), type=dict[str, object])
        except msgspec.DecodeError as error:
            raise BadCall(f"the body is not JSON: {error}", code="bad_request") from None

    async def register(request: web.Request) -> web.Response:
        body = await body_of(request)
        query = request.match_info["query"]
        instance, batch = int(str(body["instance"])), int(str(body["batch"]))
        await coordinator.register(query, instance, batch, substreams_of(body["substreams"]))
        return web.json_response({})

    async def prepare(request: web.Request) -> web.Response:
        body = await body_of(request)
        await coordinator.prepare(request.match_info["query"], body)
        return web.json_response({"lsn": 0})

    async def finish(request: web.Request) -> web.Response:
        await body_of(request)
        await coordinator.finished(request.match_info["query"])
        return web.json_response({})

    app = web.Application(middlewares=[_answer_errors], client_max_size=64 << 20)
    app.router.add_post("/v1/queries/{query}/registrations", register)
    app.router.add_post("/v1/queries/{query}/markers", prepare)
    app.router.add_post("/v1/queries/{query}/finish", finish)
    return app


async def serve(client: Client, token: str, port: int, ready: Callable[[str], None]) -> None:
    """Until SIGTERM."""
    coordinator = Coordinator(client, uuid.uuid4().hex)
    await coordinator.recover()
    runner = web.AppRunner(make_app(coordinator, token), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    ready(f"http://127.0.0.1:{runner.addresses[0][1]}")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    await stop.wait()
    await runner.cleanup()
