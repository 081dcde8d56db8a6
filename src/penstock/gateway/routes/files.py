"""Checkpoint files of queries: into the log as they are, and out again for a recovery."""

from __future__ import annotations

from itertools import accumulate, pairwise

import msgspec
import xxhash
from aiohttp import web

from penstock.gateway.bodies import (
    NUMBER_MAX,
    bad_request,
    is_number,
    need_number,
    number_in,
    query_id,
)
from penstock.gateway.context import Gateway, gateway_of
from penstock.gateway.routes.rows_in import entry_too_large, read_body
from penstock.log.operations import AppendFiles, FileDraft
from penstock.log.reading.recovery import checkpoint_of, file_bytes, state_of
from penstock.model.ids import BatchId, FilePath, Instance, Lsn, QueryId, file_path

FILES_MAX = 1_000
MARKERS_MAX = 100
STORES_MAX = 100


async def append_files(request: web.Request) -> web.Response:
    """`POST /v1/queries/Q/files`: durable when answered, all of them or none."""
    gateway = gateway_of(request)
    query = query_id(request.match_info["query"])
    instance = Instance(need_number(request, "instance"))
    batch = BatchId(need_number(request, "batch"))
    paths = _paths(request)
    sizes = _sizes(request, len(paths))
    bound = gateway.settings.entry_bytes_max
    async with gateway.bodies:
        body = await read_body(request, gateway)
        files = tuple(_cut(body, paths, sizes if sizes is not None else [len(body)], bound))
        del body
        lsns = await gateway.run(AppendFiles(query, instance, batch, files))
    return web.json_response({"entries": lsns})


def _paths(request: web.Request) -> list[FilePath]:
    one, several = request.query.get("path"), request.query.get("paths")
    text = one if one is not None else several
    if text is None or (one is not None and several is not None):
        raise bad_request("give path=… for one file or paths=…,… for several, one of them")
    parts = text.split(",") if one is None else [text]
    if len(parts) > FILES_MAX:
        raise bad_request(
            f"the request has {len(parts)} files, and may have {FILES_MAX}; send it in parts"
        )
    return [file_path(part) for part in parts]


def _sizes(request: web.Request, count: int) -> list[int] | None:
    """How the body is cut; None for one file that is the whole body."""
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


def _cut(body: bytes, paths: list[FilePath], sizes: list[int], bound: int) -> list[FileDraft]:
    if sum(sizes) != len(body):
        raise bad_request(
            f"the sizes add up to {sum(sizes)} bytes and the body has {len(body)}; send the files "
            "one after the other, with nothing between them"
        )
    ends = pairwise(accumulate(sizes, initial=0))
    drafts = []
    for path, (start, end) in zip(paths, ends, strict=True):
        if end - start > bound:
            raise entry_too_large(end - start, bound, f"the file {path}")
        payload = body[start:end]
        drafts.append(FileDraft(path, payload, xxhash.xxh3_64_intdigest(payload)))
    return drafts


async def get_file(request: web.Request) -> web.Response:
    """`GET /v1/queries/Q/files/LSN`: the bytes as they were appended."""
    gateway = gateway_of(request)
    query = query_id(request.match_info["query"])
    text = request.match_info["lsn"]
    if not is_number(text) or int(text) > NUMBER_MAX:
        raise bad_request(f"{text!r} is not an entry; give the number a marker names")
    body = await gateway.in_thread(_read, gateway, query, Lsn(int(text)))
    return web.Response(body=body, content_type="application/octet-stream")


def _read(gateway: Gateway, query: QueryId, lsn: Lsn) -> bytes:
    with gateway.log.reading() as view:
        return file_bytes(view, query, lsn)


async def get_checkpoint(request: web.Request) -> web.Response:
    """`GET /v1/queries/Q/checkpoint`: what brings a location up to the last marker."""
    gateway = gateway_of(request)
    query = query_id(request.match_info["query"])
    after = number_in(request, "after_batch")
    body = await gateway.in_thread(
        _checkpoint, gateway, query, None if after is None else BatchId(after)
    )
    return web.Response(body=body, content_type="application/json")


def _checkpoint(gateway: Gateway, query: QueryId, after: BatchId | None) -> bytes:
    with gateway.log.reading() as view:
        return msgspec.json.encode(checkpoint_of(view, query, after, MARKERS_MAX))


async def get_state(request: web.Request) -> web.Response:
    """`GET /v1/queries/Q/state`: what brings the state stores up to the last marker."""
    gateway = gateway_of(request)
    query = query_id(request.match_info["query"])
    body = await gateway.in_thread(_state, gateway, query, request.query.get("after", ""))
    return web.Response(body=body, content_type="application/json")


def _state(gateway: Gateway, query: QueryId, after: str) -> bytes:
    with gateway.log.reading() as view:
        return msgspec.json.encode(state_of(view, query, after, STORES_MAX))
