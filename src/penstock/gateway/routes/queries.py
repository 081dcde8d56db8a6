"""Routes of queries: take over, mark, list, reset and delete."""

from __future__ import annotations

import os
from typing import Any

from aiohttp import web

from penstock.gateway.context import Gateway, gateway_of
from penstock.gateway.encode import json_answer
from penstock.gateway.json_pages import json_list, json_page
from penstock.gateway.parse import json_of, marker_of, number_in, query_in_path, short_text
from penstock.log.operations import (
    DeleteQuery,
    Mark,
    ResetQuery,
    Taken,
    TakeQuery,
    Unfinished,
)
from penstock.log.reading.descriptions import describe_query, query_list
from penstock.log.reading.visible import marker_list
from penstock.model.answers import Deleted, EntryPlace
from penstock.model.ids import BatchId, Instance, QueryId
from penstock.model.query_answers import AppendLimits, NewInstance, TakenOver
from penstock.model.requests import InstanceBody, MarkerBody, ResetBody

MARKERS_MAX = 1_000
"""In one answer, and `page_bytes` of them, but one at least."""


async def take_over(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/instances`: the next instance, and what one request of it may hold."""
    gateway = gateway_of(request)
    query = query_in_path(request)
    body = await gateway.json_body(request, InstanceBody)
    taken: Taken = await gateway.run(TakeQuery(query, short_text(body.run, "'run'"), body.name))
    settings = gateway.settings
    limits = AppendLimits(
        settings.entry_bytes_max, settings.request_bytes_max, settings.request_files_max
    )
    return json_answer(TakenOver(taken.instance, taken.marker, limits))


async def mark(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/markers`: the one append that commits a batch."""
    gateway = gateway_of(request)
    query = query_in_path(request)
    async with gateway.body(request) as body:
        operation = await gateway.decode(len(body), _mark, query, body)
    return json_answer(EntryPlace(await gateway.run(operation)))


def _mark(query: QueryId, body: bytes) -> Mark:
    marked = json_of(body, MarkerBody)
    copied = None if marked.copied is None else BatchId(marked.copied)
    return Mark(marker_of(query, marked), copied)


async def list_queries(request: web.Request) -> web.StreamResponse:
    """`GET /v1/queries`."""
    return await json_list(request, query_list)


async def get_query(request: web.Request) -> web.Response:
    """`GET /v1/queries/Q`."""
    return json_answer(gateway_of(request).read(describe_query, query_in_path(request)))


async def list_markers(request: web.Request) -> web.StreamResponse:
    """`GET /v1/queries/Q/markers`: the task log, as far as it says what was committed."""
    after = number_in(request, "after_batch")
    first = BatchId(0 if after is None else after + 1)
    return await json_page(request, marker_list, query_in_path(request), first, MARKERS_MAX)


async def reset_query(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/reset`: fence it, and let it begin at batch 0 again."""
    gateway = gateway_of(request)
    query = query_in_path(request)
    body = await gateway.json_body(request, ResetBody) if request.can_read_body else ResetBody()
    run = body.run or f"reset-{gateway.clock.wall_ms()}-{os.urandom(4).hex()}"
    entries_max = gateway.settings.trim_entries_max
    reset = ResetQuery(query, short_text(run, "'run'"), entries_max)
    taken: Taken = await _in_steps(gateway, reset)
    return json_answer(NewInstance(taken.instance))


async def delete_query(request: web.Request) -> web.Response:
    """`DELETE /v1/queries/Q?instance=I`."""
    gateway = gateway_of(request)
    query = query_in_path(request)
    number = number_in(request, "instance")
    instance = None if number is None else Instance(number)
    entries_max = gateway.settings.trim_entries_max
    await _in_steps(gateway, DeleteQuery(query, True, instance, entries_max))
    return json_answer(Deleted(query))


async def _in_steps(gateway: Gateway, operation: ResetQuery | DeleteQuery) -> Any:
    """The answer to the last step. Others append between two steps, and the collector takes those
    that are left if this request ends before."""
    while isinstance(answer := await gateway.run(operation), Unfinished):
        pass
    return answer
