"""The protocol check: server and plug-in of different versions refuse each other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from penstock.errors import BadCall
from penstock.model.protocol import PROTOCOL, PROTOCOL_HEADER

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def check_protocol(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A request that names another protocol is refused, and so is a take-over that names none.

    A query's first step is its take-over, and a plug-in that does not know of protocols names
    none: so it is stopped before it has written anything.
    """
    sent = request.headers.get(PROTOCOL_HEADER)
    is_take_over = request.method == "POST" and request.path.endswith("/instances")
    if (sent is None and is_take_over) or sent not in (None, str(PROTOCOL)):
        raise BadCall(
            f"the request is of protocol {sent or '1, or names none'}, and this server follows "
            f"protocol {PROTOCOL}; use the plug-in and the client of the server's own version, or "
            f"send '{PROTOCOL_HEADER}: {PROTOCOL}'",
            code="wrong_protocol",
        )
    return await handler(request)


async def name_protocol(_: web.Request, answer: web.StreamResponse) -> None:
    """Every answer names the protocol, so that a newer plug-in knows an older server by it."""
    answer.headers[PROTOCOL_HEADER] = str(PROTOCOL)
