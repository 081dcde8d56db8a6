"""Answers encoded: structs to JSON, Arrow to JSON lines where they are asked for."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
from aiohttp import web

from penstock.gateway.json_rows import encode_lines

PIECE_BYTES = 512 << 10


def json_answer(value: Any, status: int = 200) -> web.Response:
    """A response with the JSON of a struct."""
    return json_bytes_answer(msgspec.json.encode(value), status)


def json_bytes_answer(body: bytes, status: int = 200) -> web.Response:
    """A response with JSON that is encoded already: large ones are, beside the event loop."""
    return web.Response(body=body, status=status, content_type="application/json")


def arrow_to_lines(body: bytes) -> bytes:
    """An Arrow IPC stream as JSON lines."""
    with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
        return encode_lines(list(reader))


async def sent(
    request: web.Request, body: bytes, content_type: str, headers: dict[str, str] | None = None
) -> web.StreamResponse:
    """An answer of any size. One that is long is returned when its reader has taken it, all but a
    little: until then its memory is in use."""
    if len(body) <= PIECE_BYTES:
        return web.Response(body=body, headers=headers, content_type=content_type)
    answer = web.StreamResponse(headers=headers)
    answer.content_type = content_type
    answer.content_length = len(body)
    await answer.prepare(request)
    pieces = memoryview(body)
    for start in range(0, len(body), PIECE_BYTES):
        await answer.write(pieces[start : start + PIECE_BYTES])
    await answer.write_eof()
    return answer
