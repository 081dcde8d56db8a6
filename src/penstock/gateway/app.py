"""The routes, and what every request passes on its way: errors to sentences, then the token."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from penstock.errors import BadCall, Bug, PenstockError, TryAgain, to_wire
from penstock.gateway.context import GATEWAY, Gateway, gateway_of
from penstock.gateway.protocol import check_protocol, name_protocol
from penstock.gateway.routes import (
    admission,
    consumers,
    files,
    maintenance,
    queries,
    records,
    rows_in,
    rows_out,
    streams,
)

_LOG = logging.getLogger("penstock.gateway")
_OPEN_ROUTE = "/v1/health"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every refusal leaves as JSON with a code, an act and a sentence."""
    connection = gateway_of(request).connections.of(request)
    if connection is not None:
        connection.begin_answer()
    try:
        return await handler(request)
    except PenstockError as error:
        return _error_answer(error)
    except web.HTTPMethodNotAllowed as error:
        return _error_answer(_unknown_route(request, f"; it takes {_methods(error)}"))
    except web.HTTPNotFound:
        return _error_answer(_unknown_route(request, "; see docs/http.md"))
    except ConnectionResetError:
        return web.Response()  # nobody is there to take it
    except web.HTTPException:
        raise
    except Exception as error:
        _LOG.exception("%s %s failed", request.method, request.path)
        cause = f"{type(error).__name__}: {error}"
        return _error_answer(Bug(f"the server failed: {cause}; report this", code="bug"))
    finally:
        if connection is not None:
            connection.end_answer()


def _methods(error: web.HTTPMethodNotAllowed) -> str:
    return ", ".join(sorted(error.allowed_methods))


def _unknown_route(request: web.Request, remedy: str) -> BadCall:
    return BadCall(
        f"there is no {request.method} {request.path}{remedy}", code="unknown_route", status=404
    )


def _error_answer(error: PenstockError) -> web.Response:
    answer = web.json_response({"error": to_wire(error)}, status=error.http_status)
    if error.http_status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


@web.middleware
async def check_token(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The token is compared in constant time; a stopping server takes nothing new."""
    gateway = gateway_of(request)
    if request.path == _OPEN_ROUTE:
        return await handler(request)
    sent = request.headers.get("Authorization", "")
    if not hmac.compare_digest(
        sent.encode("utf-8", "replace"), b"Bearer " + gateway.token.encode()
    ):
        fact = "carries another token" if sent else "carries no token"
        raise BadCall(
            f"the request {fact}; send 'Authorization: Bearer TOKEN' with the server's token",
            code="unauthorized",
            status=401,
        )
    if gateway.stopping:
        raise TryAgain("the server is stopping; try again when it is back", code="stopping")
    with gateway.in_flight:
        return await handler(request)


def make_app(gateway: Gateway) -> web.Application:
    """The application of one gateway."""
    app = web.Application(middlewares=[answer_errors, check_token, check_protocol])
    app[GATEWAY] = gateway
    app.on_response_prepare.append(name_protocol)
    app.router.add_get("/v1/health", maintenance.health)
    app.router.add_get("/v1/server", maintenance.server)
    app.router.add_get("/v1/streams", streams.list_streams)
    app.router.add_get("/v1/streams/{stream}", streams.get_stream)
    app.router.add_put("/v1/streams/{stream}", streams.put_stream)
    app.router.add_patch("/v1/streams/{stream}", streams.alter_stream)
    app.router.add_delete("/v1/streams/{stream}", streams.delete_stream)
    app.router.add_post("/v1/streams/{stream}/trim", streams.trim_stream)
    app.router.add_post("/v1/streams/{stream}/rows", rows_in.append_rows)
    app.router.add_get("/v1/streams/{stream}/rows", rows_out.fetch_rows)
    app.router.add_get("/v1/streams/{stream}/position", streams.find_position)
    app.router.add_post("/v1/streams/{stream}/entries", rows_in.append_entries)
    app.router.add_get("/v1/queries", queries.list_queries)
    app.router.add_get("/v1/queries/{query}", queries.get_query)
    app.router.add_post("/v1/queries/{query}/instances", queries.take_over)
    app.router.add_post("/v1/queries/{query}/markers", queries.mark)
    app.router.add_get("/v1/queries/{query}/markers", queries.list_markers)
    app.router.add_post("/v1/queries/{query}/files", files.append_files)
    app.router.add_get("/v1/queries/{query}/files/{lsn}", files.get_file)
    app.router.add_get("/v1/queries/{query}/checkpoint", files.get_checkpoint)
    app.router.add_get("/v1/queries/{query}/state", files.get_state)
    app.router.add_post("/v1/queries/{query}/reset", queries.reset_query)
    app.router.add_delete("/v1/queries/{query}", queries.delete_query)
    app.router.add_get("/v1/consumers", consumers.list_consumers)
    app.router.add_put("/v1/consumers/{group}/streams/{stream}", consumers.register)
    app.router.add_post("/v1/consumers/{group}/positions", consumers.move)
    app.router.add_delete("/v1/consumers/{group}", consumers.forget)
    app.router.add_post("/v1/collect", maintenance.collect)
    app.router.add_get("/v1/backup", maintenance.back_up)
    app.router.add_post("/v1/records", records.append_record)
    app.router.add_get("/v1/records", records.list_records)
    app.router.add_post("/v1/records/trim", records.trim_records)
    app.router.add_post("/v1/admission", admission.admit)
    return app
