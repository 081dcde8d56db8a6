"""Streams, queries and admission: the small requests that steer the large ones."""

from __future__ import annotations

import os
from importlib import metadata
from itertools import islice
from typing import Any

import msgspec
from aiohttp import web

from penstock.admission.read_positions import Asker
from penstock.errors import BadCall
from penstock.gateway.bodies import (
    AdmissionBody,
    InstanceBody,
    MarkerBody,
    StreamBody,
    bad_request,
    body_of,
    marker_of,
    number_in,
    query_id,
    short_text,
)
from penstock.gateway.context import Gateway, gateway_of
from penstock.log.decide.fence import check_instance
from penstock.log.decide.need import need_stream
from penstock.log.operations import (
    CreateStream,
    Mark,
    Move,
    MovePosition,
    Register,
    StreamMade,
    Taken,
    TakeQuery,
)
from penstock.log.reading.visible import (
    check_position,
    earliest,
    end_of_batch,
    latest,
    markers_from,
)
from penstock.log.retention.due import away
from penstock.log.state import ConsumerRecord, QueryRecord, StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import BatchId, Instance, Lsn, QueryId, stream_name
from penstock.model.protocol import PROTOCOL
from penstock.model.routing import check_key
from penstock.model.schema import canonical, from_base64, schema_of, to_base64, to_ddl

MARKERS_MAX = 1_000


def version() -> str:
    """The installed version; a source tree that is not installed says so."""
    try:
        return metadata.version("penstock")
    except metadata.PackageNotFoundError:
        return "0+source"


def json_answer(value: Any, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(value), status=status, content_type="application/json"
    )


async def health(_: web.Request) -> web.Response:
    return json_answer({"version": version(), "protocol": PROTOCOL})


async def server(request: web.Request) -> web.Response:
    gateway = gateway_of(request)
    with gateway.log.reading() as view:
        last = view.next_lsn - 1
        gone = away(view, gateway.collector.now_ms(view), gateway.settings)
    return json_answer(
        {
            "version": version(),
            "protocol": PROTOCOL,
            "data": str(gateway.log.folder.path.absolute()),
            "pid": os.getpid(),
            "started_at_ms": gateway.started_at_ms,
            "now_ms": gateway.clock.wall_ms(),
            "consumers_away": len(gone),
            "latest": last,
        }
    )


def described(gateway: Gateway, view: StoreView, stream: StreamRecord) -> dict[str, Any]:
    schema = gateway.schema(stream)
    start, end = earliest(view, stream), latest(view, stream)
    last, base = view.commit_at(stream, end), view.commit_at(stream, start)
    return {
        "name": stream.name,
        "ddl": to_ddl(schema),
        "schema": to_base64(schema),
        "substreams": stream.substreams,
        "key": list(stream.key),
        "earliest": start,
        "latest": end,
        "rows": (last.rows_total if last else 0) - (base.rows_total if base else 0),
        "bytes": (last.bytes_total if last else 0) - (base.bytes_total if base else 0),
        "version": len(stream.versions),
        "first_columns": len(gateway.version(stream, 0)),
        "age_ms_max": stream.retention.age_ms_max,
        "bytes_max": stream.retention.bytes_max,
    }


async def list_streams(request: web.Request) -> web.Response:
    gateway = gateway_of(request)
    with gateway.log.reading() as view:
        found = [described(gateway, view, stream) for stream in view.streams()]
    return json_answer({"streams": found})


async def get_stream(request: web.Request) -> web.Response:
    gateway = gateway_of(request)
    with gateway.log.reading() as view:
        stream = gateway.stream_in(request, view)
        return json_answer(described(gateway, view, stream))


async def put_stream(request: web.Request) -> web.Response:
    """Make a stream, or say that the one that is there is the same."""
    gateway = gateway_of(request)
    name = stream_name(request.match_info["stream"])
    body = await body_of(request, StreamBody)
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
    message = canonical(schema).serialize().to_pybytes()
    made: StreamMade = await gateway.run(CreateStream(name, message, body.substreams, key))
    with gateway.log.reading() as view:
        return json_answer(described(gateway, view, made.stream), 201 if made.created else 200)


async def take_over(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/instances`."""
    gateway = gateway_of(request)
    query = query_id(request.match_info["query"])
    body = await body_of(request, InstanceBody)
    run = short_text(body.run, "'run'")
    taken: Taken = await gateway.run(TakeQuery(query, run, body.name))
    return json_answer({"instance": taken.instance, "marker": taken.marker})


async def mark(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/markers`: the one append that commits a batch."""
    gateway = gateway_of(request)
    query = query_id(request.match_info["query"])
    body = await body_of(request, MarkerBody)
    copied = None if body.copied is None else BatchId(body.copied)
    return json_answer({"lsn": await gateway.run(Mark(marker_of(query, body), copied))})


async def list_queries(request: web.Request) -> web.Response:
    with gateway_of(request).log.reading() as view:
        return json_answer({"queries": list(view.queries())})


async def get_query(request: web.Request) -> web.Response:
    query = query_id(request.match_info["query"])
    with gateway_of(request).log.reading() as view:
        found: QueryRecord | None = view.query(query)
        if found is None:
            raise BadCall(f"there is no query {query!r}", code="unknown_query", status=404)
    return json_answer(found)


async def list_markers(request: web.Request) -> web.Response:
    """`GET /v1/queries/Q/markers`: the task log, as far as it says what was committed."""
    query = query_id(request.match_info["query"])
    after = number_in(request, "after_batch")
    first = BatchId(0 if after is None else after + 1)
    with gateway_of(request).log.reading() as view:
        found = list(islice(markers_from(view, query, first), MARKERS_MAX))
    return json_answer({"markers": found})


async def admit(request: web.Request) -> web.Response:
    """`POST /v1/admission`: how far the next batch may read, held while that is nowhere."""
    gateway = gateway_of(request)
    body = await body_of(request, AdmissionBody)
    if body.instance is not None and body.query is None:
        raise bad_request("'instance' goes with 'query'; give both, or null for 'instance'")
    names = [stream_name(body.stream), *(stream_name(other.stream) for other in body.others)]
    if body.instance is not None:
        await _keep_reading(gateway, body)
    query = None if body.query is None else query_id(body.query)
    with gateway.held.watch(names, gateway.hold_s(body.wait_ms)) as watch:
        while True:
            with gateway.log.reading() as view:
                stream = need_stream(view, names[0])
                end, last, is_ready = _admitted(view, stream, body, query)
            if is_ready or not body.wait_ms or not await watch.wait():
                return json_answer({"end": end, "latest": last, "substreams": stream.substreams})


async def _keep_reading(gateway: Gateway, body: AdmissionBody) -> None:
    """Hold the stream for the query from the position it asks about, durably before it is told to
    read; later, only what has moved is kept, and nobody waits for that."""
    instance, after = Instance(body.instance or 0), Lsn(body.after)
    asker = Asker(query_id(body.query or ""), instance, stream_name(body.stream))
    with gateway.log.reading() as view:
        check_instance(view, asker.query, instance)
    if not gateway.readings.is_known(asker):
        made = Register("query", asker.query, asker.stream, after)
        there: ConsumerRecord = await gateway.run(made)
        if after < there.position:
            await gateway.run(MovePosition("query", asker.query, (Move(asker.stream, after),)))
        gateway.readings.registered(asker, after)
    elif (move := gateway.readings.asked(asker, after)) is not None:
        gateway.run_behind(move)


def _admitted(
    view: StoreView, stream: StreamRecord, body: AdmissionBody, query: QueryId | None
) -> tuple[Lsn, Lsn, bool]:
    """The end, the stream's latest, and whether any stream asked about has something."""
    if body.instance is not None and query is not None:
        check_instance(view, query, Instance(body.instance))
    after, last = Lsn(body.after), latest(view, stream)
    check_position(view, stream, after)
    until = last
    if body.until is not None:
        check_position(view, stream, Lsn(body.until))
        until = min(last, Lsn(body.until))
    end = end_of_batch(view, stream, after, until, body.rows_max, body.bytes_max)
    is_ready = end > after
    for other in body.others:
        record = need_stream(view, stream_name(other.stream))
        check_position(view, record, Lsn(other.after))
        is_ready = is_ready or latest(view, record) > other.after
    return end, last, is_ready
