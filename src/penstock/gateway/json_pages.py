"""Answers of JSON that may be long: a page in the room that there is for pages, sent as it is
taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

from penstock.gateway.context import gateway_of
from penstock.gateway.encode import sent


async def json_page(
    request: web.Request, question: Callable[..., Any], *args: Any
) -> web.StreamResponse:
    """The answer to a question of the log, which is asked with the arguments and, as the last one,
    about how many bytes there may be in it."""
    gateway = gateway_of(request)
    size = gateway.page_memory.page_bytes(gateway.settings.page_bytes)
    with gateway.page_memory.held(size) as room:
        body = await gateway.look_up_json(question, *args, size)
        room.resize(len(body))
        return await sent(request, body, "application/json")


async def json_list(
    request: web.Request, question: Callable[..., Any], *args: Any
) -> web.StreamResponse:
    """The answer to a question of the log that is asked for as a whole: its size is known once it
    is there, and held until it is taken."""
    gateway = gateway_of(request)
    body = await gateway.look_up_json(question, *args)
    with gateway.page_memory.held(len(body)):
        return await sent(request, body, "application/json")
