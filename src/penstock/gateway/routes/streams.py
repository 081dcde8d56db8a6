"""Routes of streams: list, make, alter, trim, delete, and find positions."""

from __future__ import annotations

import pyarrow as pa
from aiohttp import web

from penstock.errors import BadCall
from penstock.gateway.context import gateway_of
from penstock.gateway.encode import json_answer
from penstock.gateway.json_pages import json_list
from penstock.gateway.parse import bad_request, json_of, number_in, stream_in_path
from penstock.log.operations import (
    AlterStream,
    CreateStream,
    DeleteStream,
    StreamMade,
    Trimmed,
    TrimStream,
)
from penstock.log.reading.descriptions import NAMED_POSITIONS, describe_stream, stream_list
from penstock.log.reading.visible import position_at_time
from penstock.log.retention.trim_step import trim_step
from penstock.log.state import Retention, StreamRecord
from penstock.model.answers import Deleted, Position, TrimmedRows
from penstock.model.ids import Lsn, StreamName
from penstock.model.requests import AlterBody, StreamBody, TrimBody
from penstock.model.routing import check_key
from penstock.model.schema import added, canonical, from_base64, schema_of


async def list_streams(request: web.Request) -> web.StreamResponse:
    """`GET /v1/streams`."""
    return await json_list(request, stream_list, gateway_of(request).schemas)


async def get_stream(request: web.Request) -> web.Response:
    """`GET /v1/streams/S`."""
    gateway = gateway_of(request)
    return json_answer(gateway.read(describe_stream, gateway.schemas, stream_in_path(request)))


async def put_stream(request: web.Request) -> web.Response:
    """`PUT /v1/streams/S`: make a stream, or say that the one that is there is the same."""
    gateway = gateway_of(request)
    name = stream_in_path(request)
    async with gateway.body(request) as body:
        operation = await gateway.decode(len(body), _creation, name, body)
    made: StreamMade = await gateway.run(operation)
    described = gateway.read(describe_stream, gateway.schemas, made.stream)
    return json_answer(described, 201 if made.created else 200)


def _creation(name: StreamName, sent: bytes) -> CreateStream:
    body = json_of(sent, StreamBody)
    if (body.schema is None) == (body.ddl is None):
        raise BadCall(
            "give either 'schema', the base64 of an Arrow IPC schema message, or 'ddl'",
            code="bad_schema",
        )
    schema = schema_of(body.ddl) if body.ddl is not None else from_base64(body.schema or "")
    if body.key is not None:
        if len(set(body.key)) != len(body.key):
            raise bad_request(f"the key {body.key} names a column twice; name each once")
        check_key(schema, body.key)
    key = None if body.key is None else tuple(body.key)
    return CreateStream(name, _schema_message(schema), body.substreams, key)


def _schema_message(schema: pa.Schema) -> bytes:
    return bytes(canonical(schema).serialize().to_pybytes())


async def alter_stream(request: web.Request) -> web.Response:
    """`PATCH /v1/streams/S`: columns at the end, more substreams, how long rows are kept."""
    gateway = gateway_of(request)
    stream = gateway.stream(stream_in_path(request))
    async with gateway.body(request) as body:
        operation = await gateway.decode(
            len(body), _alteration, stream, gateway.schemas.current(stream), body
        )
    altered: StreamRecord = await gateway.run(operation)
    return json_answer(gateway.read(describe_stream, gateway.schemas, altered))


def _alteration(stream: StreamRecord, columns: pa.Schema, sent: bytes) -> AlterStream:
    body = json_of(sent, AlterBody)
    schema = _altered_schema(columns, body)
    return AlterStream(
        stream.name,
        None if schema is None else _schema_message(schema),
        body.substreams,
        _altered_retention(stream.retention, body),
        body.id,
        body.revision,
    )


def _altered_schema(schema: pa.Schema, body: AlterBody) -> pa.Schema | None:
    """The new schema, from the columns to add or as a whole; None: it stays."""
    given = [text for text in (body.add, body.schema, body.ddl) if text is not None]
    if len(given) > 1:
        raise bad_request("give one of 'add', 'schema' and 'ddl', not several")
    if body.add is not None:
        return added(schema, schema_of(body.add))
    if body.ddl is not None:
        return schema_of(body.ddl)
    return None if body.schema is None else from_base64(body.schema)


def _altered_retention(retention: Retention, body: AlterBody) -> Retention | None:
    """The bounds given in place of those there were, 0 lifting one; None: they stay."""
    if body.age_ms_max is None and body.bytes_max is None:
        return None
    age = retention.age_ms_max if body.age_ms_max is None else body.age_ms_max
    size = retention.bytes_max if body.bytes_max is None else body.bytes_max
    return Retention(age or None, size or None)


async def delete_stream(request: web.Request) -> web.Response:
    """`DELETE /v1/streams/S?force=1&id=I`; what it held is swept away behind."""
    gateway = gateway_of(request)
    name = stream_in_path(request)
    force = request.query.get("force", "0")
    if force not in ("0", "1"):
        raise bad_request(f"force is {force!r}, and must be 0 or 1")
    await gateway.run(DeleteStream(name, force == "1", number_in(request, "id")))
    return json_answer(Deleted(name))


async def trim_stream(request: web.Request) -> web.Response:
    """`POST /v1/streams/S/trim`: now, up to a position; refused if somebody needs more. Others
    append between two steps."""
    gateway = gateway_of(request)
    stream = gateway.stream(stream_in_path(request))
    until = Lsn((await gateway.json_body(request, TrimBody)).until)
    away_ms = gateway.settings.consumer_away_ms_max
    now_ms = gateway.read(gateway.collector.now_ms)
    whole = TrimStream(stream.name, until, away_ms, now_ms=now_ms)
    entries = size = 0
    is_done = False
    while not is_done:
        step, is_done = await gateway.look_up(
            gateway.read, trim_step, whole, gateway.settings.trim_entries_max
        )
        trimmed: Trimmed = await gateway.run(step)
        entries, size = entries + trimmed.entries, size + trimmed.payload_bytes
    return json_answer(TrimmedRows(Lsn(trimmed.until), entries, size))


async def find_position(request: web.Request) -> web.Response:
    """`GET /v1/streams/S/position`: by name or by time."""
    gateway = gateway_of(request)
    stream = stream_in_path(request)
    at, time_ms = request.query.get("at"), number_in(request, "time_ms")
    if at is None and time_ms is not None:
        return json_answer(Position(gateway.read(position_at_time, stream, time_ms)))
    if at in NAMED_POSITIONS and time_ms is None:
        return json_answer(Position(gateway.read(NAMED_POSITIONS[at], stream)))
    raise bad_request("say at=earliest, at=latest or time_ms=…, one of them")
