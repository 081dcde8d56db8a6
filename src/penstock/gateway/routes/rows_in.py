"""Routes of rows on their way in: a producer's, visible when answered, and a task's, which wait
for a marker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from aiohttp import web

from penstock.errors import TryAgain
from penstock.gateway.context import Gateway, gateway_of
from penstock.gateway.drafts import Bounds, entry_drafts, file_drafts, row_drafts, shape_of
from penstock.gateway.encode import json_answer
from penstock.gateway.file_parameters import divided, file_paths, need_sizes
from penstock.gateway.parse import (
    bad_request,
    check_parameters,
    need_number,
    number_in,
    producer_of,
    query_id,
    stream_in_path,
)
from penstock.log.decide.need import check_substream
from penstock.log.operations import AppendFiles, AppendPending, AppendRows
from penstock.log.state import StreamRecord
from penstock.model.answers import Appended, EntryPlaces
from penstock.model.ids import BatchId, Instance, Substream
from penstock.model.marker import Stamp
from penstock.model.routing import check_key

T = TypeVar("T")
# The route refuses any other: what a writer asked for beside these would silently not be done.
STAMP = {"query", "instance", "batch", "partition", "attempt"}
ENTRY_PARAMETERS = {*STAMP, "substreams", "paths", "sizes"}


async def append_rows(request: web.Request) -> web.Response:
    """`POST /v1/streams/S/rows`: durable and visible when answered."""
    gateway = gateway_of(request)
    stream = gateway.stream(stream_in_path(request))
    producer, sequence = producer_of(
        request.headers.get("Penstock-Producer"), request.headers.get("Penstock-Sequence")
    )
    substream = number_in(request, "substream")
    if substream is not None:
        check_substream(stream, substream)
    key = _key(request, stream, gateway)
    content_type = request.content_type
    async with gateway.body(request) as body:
        place = gateway.next_turn(stream) if substream is None and not key else substream

        async def append(record: StreamRecord) -> Appended:
            drafts = await gateway.decode(
                len(body),
                row_drafts,
                *(body, content_type, gateway.schemas, record, place, key),
                bounds=_bounds(gateway),
            )
            shape = shape_of(record, None if place is not None else record.substreams)
            operation = AppendRows(record.name, drafts, producer, sequence, shape)
            return cast("Appended", await gateway.run(operation))

        return json_answer(await _until_unaltered(gateway, stream, append))


async def append_entries(request: web.Request) -> web.Response:
    """`POST /v1/streams/S/entries`: durable when answered, visible once a marker names them.

    The state that the task has written may come along, as files behind the rows: a request and a
    sync less.
    """
    check_parameters(request, ENTRY_PARAMETERS)
    gateway = gateway_of(request)
    settings = gateway.settings
    stream = gateway.stream(stream_in_path(request))
    stamp = Stamp(
        query_id(request.query.get("query", "")),
        Instance(need_number(request, "instance")),
        BatchId(need_number(request, "batch")),
        need_number(request, "partition"),
        need_number(request, "attempt"),
    )
    substreams = _substreams(request, stream)
    paths = file_paths(request, settings.request_files_max) if "paths" in request.query else []
    sizes = need_sizes(request, len(paths)) if paths else []
    async with gateway.body(request) as body:
        rows, files = divided(body, sum(sizes))
        drafts = await gateway.decode(
            len(rows), entry_drafts, rows, gateway.schemas, stream, substreams, _bounds(gateway)
        )
        # A task divides keys among as many substreams as there were when its query started.
        operation = AppendPending(stream.name, stamp, drafts, shape_of(stream, None))
        if not paths:
            del body, rows
            return json_answer(EntryPlaces(tuple(await gateway.run(operation))))
        state = file_drafts(files, paths, sizes, settings.entry_bytes_max)
        entries, places = await gateway.run_together(
            operation, AppendFiles(stamp.query, stamp.instance, stamp.batch, state)
        )
        return json_answer(EntryPlaces(tuple(entries), tuple(places)))


def _bounds(gateway: Gateway) -> Bounds:
    return Bounds(gateway.settings.entry_bytes_max, gateway.settings.request_bytes_max)


async def _until_unaltered(
    gateway: Gateway, stream: StreamRecord, append: Callable[[StreamRecord], Awaitable[T]]
) -> T:
    """Prepare and append; once more, if the stream was altered between the two."""
    try:
        return await append(stream)
    except TryAgain as error:
        if error.code != "stream_altered":
            raise
        return await append(gateway.stream(stream.name))


def _key(request: web.Request, stream: StreamRecord, gateway: Gateway) -> tuple[str, ...]:
    text = request.query.get("key")
    key = stream.key if text is None else tuple(name.strip() for name in text.split(","))
    check_key(gateway.schemas.current(stream), key)
    return key


def _substreams(request: web.Request, stream: StreamRecord) -> list[Substream]:
    text = request.query.get("substreams", "")
    parts = text.split(",") if text else []
    if not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        raise bad_request(f"substreams is {text!r}, and must be numbers such as 0,1,0")
    for part in parts:
        check_substream(stream, int(part))
    return [Substream(int(part)) for part in parts]
