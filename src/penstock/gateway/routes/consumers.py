"""Routes of consumers: who reads which stream, how far each has come, and who stays away."""

from __future__ import annotations

from aiohttp import web

from penstock.gateway.context import Gateway, gateway_of
from penstock.gateway.encode import json_answer, json_bytes_answer
from penstock.gateway.parse import bad_request, short_text, stream_in_path
from penstock.log.operations import ForgetConsumer, Move, MovePosition, Register
from penstock.log.reading.descriptions import NAMED_POSITIONS, consumer_list
from penstock.log.state import ConsumerRecord
from penstock.model.answers import ForgottenStreams, MovedPositions, Position
from penstock.model.ids import Lsn, StreamName, stream_name
from penstock.model.requests import MovesBody, RegisterBody


async def list_consumers(request: web.Request) -> web.Response:
    """`GET /v1/consumers`: groups and queries, each with what it holds and whether it is away.

    With `away=true` only those that are, the longest away first.
    """
    gateway = gateway_of(request)
    away = request.query.get("away", "false")
    if away not in ("true", "false"):
        raise bad_request(f"away is {away!r}, and must be true or false")
    now_ms = gateway.read(gateway.collector.now_ms)
    away_ms_max = gateway.settings.consumer_away_ms_max
    only_away = away == "true"
    body = await gateway.look_up_json(consumer_list, now_ms, away_ms_max, only_away=only_away)
    return json_bytes_answer(body)


def _group(request: web.Request) -> str:
    return short_text(request.match_info["group"], "the group's name")


async def register(request: web.Request) -> web.Response:
    """`PUT /v1/consumers/G/streams/S`: from here on the stream is held for the group."""
    gateway = gateway_of(request)
    group = _group(request)
    stream = stream_in_path(request)
    start = _start(gateway, stream, await gateway.json_body(request, RegisterBody))
    consumer: ConsumerRecord = await gateway.run(Register("group", group, stream, start))
    return json_answer(Position(consumer.position))


def _start(gateway: Gateway, stream: StreamName, body: RegisterBody) -> Lsn:
    if isinstance(body.start, int):
        return Lsn(body.start)
    if body.start in NAMED_POSITIONS:
        return gateway.read(NAMED_POSITIONS[body.start], stream)
    raise bad_request(f"start is {body.start!r}; give earliest, latest or a position")


async def move(request: web.Request) -> web.Response:
    """`POST /v1/consumers/G/positions`: all streams named, or none."""
    gateway = gateway_of(request)
    group = _group(request)
    body = await gateway.json_body(request, MovesBody)
    moves = tuple(
        Move(
            stream_name(name),
            None if stream.position is None else Lsn(stream.position),
            None if stream.expect is None else Lsn(stream.expect),
        )
        for name, stream in body.streams.items()
    )
    moved: tuple[ConsumerRecord, ...] = await gateway.run(MovePosition("group", group, moves))
    return json_answer(MovedPositions({each.stream: each.position for each in moved}))


async def forget(request: web.Request) -> web.Response:
    """`DELETE /v1/consumers/G?stream=S`: hold nothing for the group any more."""
    gateway = gateway_of(request)
    group = _group(request)
    text = request.query.get("stream")
    stream = None if text is None else stream_name(text)
    streams = await gateway.run(ForgetConsumer("group", group, stream))
    return json_answer(ForgottenStreams(tuple(streams)))
