"""Routes of consumers: who reads which stream, how far each has come, and who stays away."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from penstock.gateway.bodies import MovesBody, RegisterBody, bad_request, body_of, short_text
from penstock.gateway.context import Gateway, gateway_of
from penstock.gateway.routes.queries import json_answer
from penstock.log.decide.consumers import Holder, holders
from penstock.log.operations import ForgetConsumer, Move, MovePosition, Register
from penstock.log.reading.visible import earliest, latest
from penstock.log.state import ConsumerRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn, stream_name


async def list_consumers(request: web.Request) -> web.Response:
    """`GET /v1/consumers`: groups and queries, each with what it holds and whether it is away.

    With `away=true` only those that are, the longest away first.
    """
    gateway = gateway_of(request)
    only = request.query.get("away", "false")
    if only not in ("true", "false"):
        raise bad_request(f"away is {only!r}, and must be true or false")
    with gateway.log.reading() as view:
        found = [_described(gateway, view, each) for each in holders(view)]
    found.sort(key=lambda each: (each["reader"], each["name"], each["stream"]))
    if only == "true":
        found = [each for each in found if each["is_away"]]
        found.sort(key=lambda each: int(each["heard_at_ms"]))
    return json_answer({"consumers": found})


def _described(gateway: Gateway, view: StoreView, holder: Holder) -> dict[str, Any]:
    stream = view.stream(holder.stream)
    behind = 0
    if stream is not None:
        last = view.commit_at(stream, latest(view, stream))
        base = view.commit_at(stream, holder.position)
        behind = (last.rows_total if last else 0) - (base.rows_total if base else 0)
    away_ms = gateway.settings.consumer_away_ms_max
    is_away = holder.is_away(gateway.collector.now_ms(view), away_ms)
    return {
        "reader": holder.reader,
        "name": holder.name,
        "stream": holder.stream,
        "position": holder.position,
        "rows_behind": behind,
        "heard_at_ms": holder.heard_at_ms,
        "is_away": is_away,
        "away_since_ms": holder.heard_at_ms + away_ms if is_away else None,
        "is_trimmed": stream is None or holder.position < earliest(view, stream),
    }


def _group(request: web.Request) -> str:
    return short_text(request.match_info["group"], "the group's name")


async def register(request: web.Request) -> web.Response:
    """`PUT /v1/consumers/G/streams/S`: from here on the stream is held for the group."""
    gateway = gateway_of(request)
    group = _group(request)
    body = await body_of(request, RegisterBody)
    with gateway.log.reading() as view:
        stream = gateway.stream_in(request, view)
        if isinstance(body.start, int):
            start = Lsn(body.start)
        elif body.start in ("earliest", "latest"):
            start = (earliest if body.start == "earliest" else latest)(view, stream)
        else:
            raise bad_request(f"start is {body.start!r}; give earliest, latest or a position")
    made: ConsumerRecord = await gateway.run(Register("group", group, stream.name, start))
    return json_answer({"position": made.position})


async def move(request: web.Request) -> web.Response:
    """`POST /v1/consumers/G/positions`: all streams named, or none."""
    gateway = gateway_of(request)
    group = _group(request)
    body = await body_of(request, MovesBody)
    moves = tuple(
        Move(
            stream_name(name),
            None if each.position is None else Lsn(each.position),
            None if each.expect is None else Lsn(each.expect),
        )
        for name, each in body.streams.items()
    )
    moved: tuple[ConsumerRecord, ...] = await gateway.run(MovePosition("group", group, moves))
    return json_answer({"positions": {each.stream: each.position for each in moved}})


async def forget(request: web.Request) -> web.Response:
    """`DELETE /v1/consumers/G?stream=S`: hold nothing for the group any more."""
    gateway = gateway_of(request)
    group = _group(request)
    text = request.query.get("stream")
    stream = None if text is None else stream_name(text)
    streams = await gateway.run(ForgetConsumer("group", group, stream))
    return json_answer({"forgotten": list(streams)})
