"""Answers as bytes, for where the HTTP framework answers nothing: the short way of an append, and
connections that are refused or ended."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from penstock.errors import Bug, PenstockError
from penstock.model.protocol import PROTOCOL, PROTOCOL_HEADER
from penstock.model.refusals import refusal_of

OnAnswer = Callable[[Future[Any]], None]
"""Called on the event loop with what the log says."""

_encode = msgspec.json.Encoder().encode
_HEAD = (
    "Content-Type: application/json; charset=utf-8\r\n"
    f"{PROTOCOL_HEADER}: {PROTOCOL}\r\nContent-Length: "
).encode("ascii")


def good_answer(answer: Any) -> bytes:
    """A good answer of the log; the connection is kept."""
    body = _encode(answer)
    return b"HTTP/1.1 200 OK\r\n%b%d\r\n\r\n%b" % (_HEAD, len(body), body)


def raw_answer(error: BaseException, connection: str = "close") -> bytes:
    """A refusal; what is no error of ours is a fault of ours."""
    if not isinstance(error, PenstockError):
        fault = f"{type(error).__name__}: {error}"
        error = Bug(f"the server failed: {fault}; report this", code="bug")
    body = _encode(refusal_of(error))
    line = f"HTTP/1.1 {error.http_status} {error.code}\r\nConnection: {connection}\r\n"
    return b"%b%b%d\r\n\r\n%b" % (line.encode("ascii"), _HEAD, len(body), body)
