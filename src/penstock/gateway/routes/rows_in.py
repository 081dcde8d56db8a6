"""Routes of rows on their way in: a producer's, visible when answered, and a task's, which wait
for a marker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar, cast

from aiohttp import web

from penstock.errors import BadCall, TryAgain
from penstock.gateway.context import LIGHT_ROWS_BYTES, Gateway, gateway_of
from penstock.gateway.drafts import Bounds, entry_drafts, file_drafts, row_drafts, shape_of
from penstock.gateway.encode import json_answer
from penstock.gateway.file_parameters import divided, file_paths, need_sizes
from penstock.gateway.parse import (
    bad_request,
    check_parameters,
    early_in,
    need_number,
    number_in,
    producer_of,
    query_id,
    stream_in_path,
)
from penstock.log.backends.outcomes import Given
from penstock.log.decide.need import check_substream
from penstock.log.operations import AppendFiles, AppendPending, AppendRows, Operation
from penstock.log.state import StreamRecord
from penstock.model.answers import Appended, EntryPlaces
from penstock.model.ids import BatchId, Instance, Substream
from penstock.model.marker import Stamp
from penstock.model.routing import check_key

T = TypeVar("T")
# The route refuses any other: what a writer asked for beside these would silently not be done.
STAMP = {"query", "instance", "batch", "partition", "attempt"}
ENTRY_PARAMETERS = {*STAMP, "substreams", "paths", "sizes", "early"}


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
            drafts = await _light_or_aside(
                gateway,
                len(body),
                partial(row_drafts, body, content_type, gateway.schemas, record, place, key),
            )
            shape = shape_of(record, None if place is not None else record.substreams)
            operation = AppendRows(record.name, drafts, producer, sequence, shape)
            return cast("Appended", await gateway.run(operation))

        return json_answer(await _until_unaltered(gateway, stream, append))


async def append_entries(request: web.Request) -> web.Response:
    """`POST /v1/streams/S/entries`: durable when answered, visible once a marker names them.

    The state that the task has written may come along, as files behind the rows: a request and a
    sync less. With `early=1` the answer may come before the sync, and then says so by `start`.
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
    is_early = early_in(request)
    paths = file_paths(request, settings.request_files_max) if "paths" in request.query else []
    sizes = need_sizes(request, len(paths)) if paths else []
    async with gateway.body(request) as body:
        rows, files = divided(body, sum(sizes))
        drafts = await _light_or_aside(
            gateway, len(rows), partial(entry_drafts, rows, gateway.schemas, stream, substreams)
        )
        # A task divides keys among as many substreams as there were when its query started.
        operations: list[Operation] = [
            AppendPending(stream.name, stamp, drafts, shape_of(stream, None))
        ]
        if paths:
            state = file_drafts(files, paths, sizes, settings.entry_bytes_max)
            operations.append(AppendFiles(stamp.query, stamp.instance, stamp.batch, state))
        del body, rows, files
        start = None
        if is_early:
            given = await gateway.run_early(*operations)
            places, start = [each.answer for each in given], _start_of(given)
        else:
            places = await gateway.run_together(*operations)
        entries, state_entries = places if paths else (places[0], ())
        return json_answer(EntryPlaces(tuple(entries), tuple(state_entries), start))


def _start_of(given: Sequence[Given]) -> int | None:
    """The start that answered early, if any did: a writer is told one for its whole request."""
    starts = {each.start for each in given if each.start is not None}
    if len(starts) > 1:
        raise TryAgain(
            "the log has lost a part of what it had answered for this request; try again",
            code="busy",
        )
    return min(starts, default=None)


async def _light_or_aside(gateway: Gateway, size: int, prepare: Callable[[Bounds], T]) -> T:
    """Drafts of a body of this size, prepared on the event loop if it is light and so are its
    rows, which may be known only while they are unpacked; else beside it."""
    settings = gateway.settings
    bounds = Bounds(settings.entry_bytes_max, settings.request_bytes_max)
    if gateway.is_light(size):
        light = min(LIGHT_ROWS_BYTES, bounds.rows_bytes_max)
        try:
            return prepare(bounds._replace(rows_bytes_max=light))
        except BadCall as refusal:
            if refusal.code != "request_too_large":
                raise
    return await gateway.decode_aside(prepare, bounds)


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
