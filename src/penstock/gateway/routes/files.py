"""Routes of checkpoint files: into the log as they are, and out again for a recovery."""

from __future__ import annotations

from aiohttp import web

from penstock.gateway.context import gateway_of
from penstock.gateway.drafts import file_drafts
from penstock.gateway.encode import json_answer, json_bytes_answer, sent
from penstock.gateway.parse import (
    bad_request,
    is_number,
    need_number,
    number_in,
    query_in_path,
)
from penstock.log.operations import AppendFiles
from penstock.log.reading.recovery import checkpoint_of, file_bytes, state_of
from penstock.model.answers import EntryPlaces
from penstock.model.ids import BatchId, FilePath, Instance, Lsn, file_path
from penstock.model.requests import NUMBER_MAX

MARKERS_MAX = 100
STORES_MAX = 100


async def append_files(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/files`: durable when answered, all of them or none."""
    gateway = gateway_of(request)
    query = query_in_path(request)
    instance = Instance(need_number(request, "instance"))
    batch = BatchId(need_number(request, "batch"))
    paths = _paths(request, gateway.settings.request_files_max)
    sizes = _sizes(request, len(paths))
    async with gateway.body(request) as body:
        sizes = [len(body)] if sizes is None else sizes
        files = await gateway.decode(
            len(body), file_drafts, body, paths, sizes, gateway.settings.entry_bytes_max
        )
        del body
        lsns = await gateway.run(AppendFiles(query, instance, batch, files))
    return json_answer(EntryPlaces(tuple(lsns)))


def _paths(request: web.Request, files_max: int) -> list[FilePath]:
    path, paths = request.query.get("path"), request.query.get("paths")
    text = path if path is not None else paths
    if text is None or (path is not None and paths is not None):
        raise bad_request("give path=… for one file or paths=…,… for several, one of them")
    parts = text.split(",") if path is None else [text]
    if len(parts) > files_max:
        raise bad_request(
            f"the request has {len(parts)} files, and may have {files_max}; send it in parts"
        )
    return [file_path(part) for part in parts]


def _sizes(request: web.Request, count: int) -> list[int] | None:
    """How the body is divided; None for one file that is the whole body."""
    text = request.query.get("sizes")
    if text is None and count == 1:
        return None
    parts = text.split(",") if text else []
    if not all(is_number(part) for part in parts):
        raise bad_request(f"sizes is {text!r}, and must be numbers of bytes such as 120,0,45")
    if len(parts) != count:
        raise bad_request(
            f"the request has {count} paths and {len(parts)} sizes; give a size for each path"
        )
    return [int(part) for part in parts]


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


async def get_checkpoint(request: web.Request) -> web.Response:
    """`GET /v1/queries/Q/checkpoint`: what brings a location up to the last marker."""
    after = number_in(request, "after_batch")
    batch = None if after is None else BatchId(after)
    query = query_in_path(request)
    body = await gateway_of(request).look_up_json(checkpoint_of, query, batch, MARKERS_MAX)
    return json_bytes_answer(body)


async def get_state(request: web.Request) -> web.Response:
    """`GET /v1/queries/Q/state`: what brings the state stores up to the last marker."""
    after = request.query.get("after", "")
    query = query_in_path(request)
    return json_bytes_answer(
        await gateway_of(request).look_up_json(state_of, query, after, STORES_MAX)
    )
