"""Routes and questions of aligned queries: who takes part, and what their barrier waits for."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from penstock.gateway.bodies import AlignBody, body_of, query_id
from penstock.gateway.context import gateway_of
from penstock.log.alignment import Chain
from penstock.log.barriers import readable_end
from penstock.log.chains import Align
from penstock.log.contract import QueryRecord, StreamRecord
from penstock.log.reading.visible import latest
from penstock.log.store.view import StoreView
from penstock.model.ids import Instance, Lsn, QueryId, stream_name


async def align(request: web.Request) -> web.Response:
    """`PUT /v1/queries/Q/alignment`: take part in barriers, or do so no longer."""
    gateway = gateway_of(request)
    query = query_id(request.match_info["query"])
    body = await body_of(request, AlignBody)
    outputs = tuple(dict.fromkeys(stream_name(each) for each in body.outputs))
    await gateway.run(Align(query, Instance(body.instance), outputs))
    return web.json_response({"outputs": list(outputs)})


def reader_in(request: web.Request) -> QueryId | None:
    """The query that the request says it reads for."""
    text = request.query.get("query")
    return None if text is None else query_id(text)


def readable(view: StoreView, stream: StreamRecord, query: QueryId | None) -> Lsn:
    """How far a query, or anyone, may read a stream now."""
    member = None if query is None else view.member(query)
    return latest(view, stream) if member is None else readable_end(view, member, stream)


def described(query: QueryRecord, chain: Chain | None) -> dict[str, Any]:
    """The query; of an aligned one also its outputs, and the barrier of its chain."""
    found: dict[str, Any] = msgspec.to_builtins(query)
    if chain is None:
        return found
    member = chain.members[query.query]
    found["aligned"] = {
        "outputs": member.outputs,
        "positions": member.positions,
        "chain": sorted(chain.members),
        "shown": {s: line.shown for s, line in chain.lines.items() if line.shown is not None},
        "barrier": None,
    }
    if chain.is_in_progress:
        places = {s: line.place for s, line in chain.lines.items() if line.place is not None}
        found["aligned"]["barrier"] = {
            "places": places,
            "has_passed": not member.awaits,
            "waits_for": chain.waits_for,
        }
    return found
