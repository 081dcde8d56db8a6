"""Answers encoded: structs to JSON, Arrow to JSON lines where they are asked for."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
from aiohttp import web

from penstock.gateway.json_rows import encode_lines


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
