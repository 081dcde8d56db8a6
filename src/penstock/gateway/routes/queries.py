"""Routes of queries: take over, mark, list, reset and delete."""

from __future__ import annotations

import os

from aiohttp import web

from penstock.gateway.context import gateway_of
from penstock.gateway.encode import json_answer
from penstock.gateway.parse import body_of, marker_of, number_in, query_in_path, short_text
from penstock.log.decide.need import need_query
from penstock.log.operations import DeleteQuery, Mark, ResetQuery, Taken, TakeQuery
from penstock.log.reading.visible import marker_list, query_list
from penstock.model.answers import AppendLimits, Deleted, EntryPlace, NewInstance
from penstock.model.ids import BatchId
from penstock.model.requests import InstanceBody, MarkerBody

MARKERS_MAX = 1_000


async def take_over(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/instances`: the next instance, and what one request of it may hold."""
    gateway = gateway_of(request)
    query = query_in_path(request)
    body = await body_of(request, InstanceBody)
    taken: Taken = await gateway.run(TakeQuery(query, short_text(body.run, "'run'"), body.name))
    settings = gateway.settings
    limits = AppendLimits(
        settings.entry_bytes_max, settings.request_bytes_max, settings.request_files_max
    )
    return json_answer({"instance": taken.instance, "marker": taken.marker, "limits": limits})


async def mark(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/markers`: the one append that commits a batch."""
    gateway = gateway_of(request)
    query = query_in_path(request)
    body = await body_of(request, MarkerBody)
    copied = None if body.copied is None else BatchId(body.copied)
    return json_answer(EntryPlace(await gateway.run(Mark(marker_of(query, body), copied))))


async def list_queries(request: web.Request) -> web.Response:
    """`GET /v1/queries`."""
    return json_answer({"queries": gateway_of(request).read(query_list)})


async def get_query(request: web.Request) -> web.Response:
    """`GET /v1/queries/Q`."""
    return json_answer(gateway_of(request).read(need_query, query_in_path(request)))


async def list_markers(request: web.Request) -> web.Response:
    """`GET /v1/queries/Q/markers`: the task log, as far as it says what was committed."""
    after = number_in(request, "after_batch")
    first = BatchId(0 if after is None else after + 1)
    query = query_in_path(request)
    return json_answer(gateway_of(request).read(marker_list, query, first, MARKERS_MAX))


async def reset_query(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/reset`: fence it, and let it begin at batch 0 again."""
    gateway = gateway_of(request)
    query = query_in_path(request)
    run = f"reset-{gateway.clock.wall_ms()}-{os.urandom(4).hex()}"
    taken: Taken = await gateway.run(ResetQuery(query, run))
    return json_answer(NewInstance(taken.instance))


async def delete_query(request: web.Request) -> web.Response:
    """`DELETE /v1/queries/Q`."""
    gateway = gateway_of(request)
    query = query_in_path(request)
    await gateway.run(DeleteQuery(query))
    return json_answer(Deleted(query))
