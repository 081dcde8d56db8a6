"""The application, and what every request passes on its way in: errors to sentences, the token."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
from aiohttp import web

from penstock.errors import BadCall, Bug, PenstockError, TryAgain
from penstock.gateway.context import GATEWAY, Gateway, gateway_of
from penstock.gateway.protocol import Handler, check_protocol, name_protocol
from penstock.gateway.scopes import ROUTES, SCOPES_OF
from penstock.gateway.tokens import Scope, Token
from penstock.model.refusals import refusal_of

_LOG = logging.getLogger("penstock.gateway")


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
    body = msgspec.to_builtins(refusal_of(error))
    answer = web.json_response(body, status=error.http_status)
    if error.http_status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


@web.middleware
async def check_token(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A token is compared with every one there is, in constant time, and may do what its scopes
    say; a stopping server takes nothing new."""
    gateway = gateway_of(request)
    # What no route has is for those who may do everything.
    scopes = SCOPES_OF.get(request.match_info.handler, ())
    if scopes is None:
        return await handler(request)
    sent = request.headers.get("Authorization", "")
    token = gateway.tokens.find(sent)
    if token is None:
        raise unauthorized("carries another token" if sent else "carries no token")
    if not token.may(scopes) and request.match_info.http_exception is None:
        raise forbidden(request, token, scopes)
    if gateway.stopping:
        raise TryAgain("the server is stopping; try again when it is back", code="stopping")
    with gateway.in_flight:
        return await handler(request)


def unauthorized(fact: str) -> BadCall:
    return BadCall(
        f"the request {fact}; send 'Authorization: Bearer TOKEN' with a token of the server",
        code="unauthorized",
        status=401,
    )


def forbidden(request: web.Request, token: Token, scopes: Sequence[Scope]) -> BadCall:
    needed = " or ".join((*scopes, "admin"))
    return BadCall(
        f"{request.method} {request.path} needs a token with the scope {needed}, and this one has "
        f"{', '.join(sorted(token.scopes))}; use another, or give it the scope in the file of "
        "tokens",
        code="forbidden",
        status=403,
    )


def make_app(gateway: Gateway) -> web.Application:
    """The application of one gateway."""
    app = web.Application(middlewares=[answer_errors, check_token, check_protocol])
    app[GATEWAY] = gateway
    app.on_response_prepare.append(name_protocol)
    for route in ROUTES:
        if route.method == "GET":
            app.router.add_get(route.path, route.handler)
        else:
            app.router.add_route(route.method, route.path, route.handler)
    return app
