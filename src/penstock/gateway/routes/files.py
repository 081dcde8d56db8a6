"""Routes of checkpoint files: into the log as they are, and out again for a recovery."""

from __future__ import annotations

from aiohttp import web

from penstock.gateway.context import gateway_of
from penstock.gateway.drafts import file_drafts
from penstock.gateway.encode import json_answer, sent
from penstock.gateway.file_parameters import file_paths, file_sizes
from penstock.gateway.json_pages import json_page
from penstock.gateway.parse import (
    bad_request,
    early_in,
    is_number,
    need_number,
    number_in,
    query_in_path,
)
from penstock.log.backends.outcomes import Given
from penstock.log.operations import AppendFiles
from penstock.log.reading.recovery import checkpoint_of, file_bytes, state_of
from penstock.model.answers import EntryPlaces
from penstock.model.ids import BatchId, Instance, Lsn
from penstock.model.numbers import NUMBER_MAX

MARKERS_MAX = 100
STORES_MAX = 100
"""In one answer, and `page_bytes` of either, but one at least."""


async def append_files(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/files`: durable when answered, all of them or none; with `early=1` the
    answer may come before the sync, and then says so by `start`."""
    gateway = gateway_of(request)
    query = query_in_path(request)
    instance = Instance(need_number(request, "instance"))
    batch = BatchId(need_number(request, "batch"))
    paths = file_paths(request, gateway.settings.request_files_max)
    sizes = file_sizes(request, len(paths))
    is_early = early_in(request)
    async with gateway.body(request) as body:
        sizes = [len(body)] if sizes is None else sizes
        files = await gateway.decode(
            len(body), file_drafts, body, paths, sizes, gateway.settings.entry_bytes_max
        )
        del body
        operation = AppendFiles(query, instance, batch, files)
        if is_early:
            (given,) = await gateway.run_early(operation)
        else:
            given = Given(await gateway.run(operation), None)
    return json_answer(EntryPlaces(tuple(given.answer), start=given.start))


async def get_file(request: web.Request) -> web.StreamResponse:
    """`GET /v1/queries/Q/files/LSN`: the bytes as they were appended."""
    gateway = gateway_of(request)
    query = query_in_path(request)
    text = request.match_info["lsn"]
    if not is_number(text) or int(text) > NUMBER_MAX:
        raise bad_request(f"{text!r} is not an entry; give the number a marker names")
    body = await gateway.look_up(gateway.read, file_bytes, query, Lsn(int(text)))
    with gateway.page_memory.held(len(body)):
        return await sent(request, body, "application/octet-stream")


async def get_checkpoint(request: web.Request) -> web.StreamResponse:
    """`GET /v1/queries/Q/checkpoint`: what brings a location up to the last marker."""
    after = number_in(request, "after_batch")
    batch = None if after is None else BatchId(after)
    return await json_page(request, checkpoint_of, query_in_path(request), batch, MARKERS_MAX)


async def get_state(request: web.Request) -> web.StreamResponse:
    """`GET /v1/queries/Q/state`: what brings the state stores up to the last marker."""
    after = request.query.get("after", "")
    return await json_page(request, state_of, query_in_path(request), after, STORES_MAX)
