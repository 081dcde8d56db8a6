"""The short way of a small append, past the HTTP framework.

A producer's request is a few hundred bytes that come at once, and most of what it costs is not the
log's part. So bytes that are one whole request of the plainest form are taken here: known headers,
each once, ASCII, with a length, and nothing after them. Whatever else they are, and whatever is
wrong with them, they take the long way as if nobody had looked: so there is one place that refuses.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from penstock.gateway.context import LIGHT_ROWS_BYTES, Gateway
from penstock.gateway.decode import ARROW, CSV, JSON_LINES
from penstock.gateway.drafts import Bounds, row_drafts, shape_of
from penstock.gateway.parse import producer_of
from penstock.gateway.raw_answers import OnAnswer
from penstock.log.operations import AppendRows
from penstock.log.state import StreamRecord
from penstock.model.ids import StreamName
from penstock.model.protocol import PROTOCOL, PROTOCOL_HEADER

HEAD_BYTES_MAX = 4 << 10
STREAM_S_MAX = 1.0
STREAMS_MAX = 10_000
_START = b"POST /v1/streams/"
_LINE = re.compile(r"POST /v1/streams/([A-Za-z_][A-Za-z0-9_]{0,100})/rows HTTP/1\.1")
_KNOWN = frozenset(
    (
        *("host", "authorization", "content-type", "content-length", "user-agent", "accept"),
        *("accept-encoding", "connection", "penstock-producer", "penstock-sequence"),
        PROTOCOL_HEADER.lower(),
    )
)


class PlainAppend(NamedTuple):
    """A request of the plainest form: the stream, the headers by lower-case name, the body."""

    stream: StreamName
    headers: dict[str, str]
    body: bytes


def plain_append(data: bytes, body_bytes_max: int) -> PlainAppend | None:
    """The append that the bytes are, all of them; None if they are anything else."""
    if not data.startswith(_START):
        return None
    end = data.find(b"\r\n\r\n", 0, HEAD_BYTES_MAX)
    if end < 0 or len(data) - end > body_bytes_max:
        return None
    head = data[:end]
    if not head.isascii():
        return None
    first, *lines = head.decode("ascii").split("\r\n")
    line = _LINE.fullmatch(first)
    if line is None:
        return None
    headers = {}
    for each in lines:
        name, colon, value = each.partition(":")
        if not colon or not value.isprintable():
            return None
        headers[name.lower()] = value.strip(" ")
    if len(headers) != len(lines) or not headers.keys() <= _KNOWN or "host" not in headers:
        return None
    length = headers.get("content-length", "")
    is_whole = length.isdigit() and len(length) < 9 and end + 4 + int(length) == len(data)
    if not is_whole or headers.get("connection", "keep-alive").lower() != "keep-alive":
        return None
    return PlainAppend(StreamName(line[1]), headers, data[end + 4 :])


class QuickAppends:
    """The short way of one server. Used on its event loop only."""

    def __init__(self, gateway: Gateway, body_bytes_max: int) -> None:
        self._gateway = gateway
        self._body_bytes_max = body_bytes_max
        self._streams: dict[StreamName, tuple[StreamRecord, float]] = {}

    def begin(self, data: bytes, on_answer: OnAnswer) -> bool:
        """Submit the append that the bytes are, and call `on_answer` with what the log says; False
        if they are to take the long way, and nothing was done."""
        if self._gateway.stopping or not self._gateway.is_warm:
            return False
        call = plain_append(data, self._body_bytes_max)
        if call is None:
            return False
        try:
            operation = self._operation(call)
            if operation is None:
                return False
            self._gateway.run_then(operation, on_answer)
        except Exception:  # the long way comes upon it again, and says so
            return False
        return True

    def _stream(self, name: StreamName) -> StreamRecord:
        """A stream as it was not long ago. Rows that are prepared for one that has been altered
        since are rows of its older version, or are refused and take the long way."""
        now_s = self._gateway.clock.monotonic_s()
        record, read_at_s = self._streams.get(name, (None, 0.0))
        if record is None or now_s - read_at_s > STREAM_S_MAX:
            record = self._gateway.stream(name)
            if len(self._streams) >= STREAMS_MAX:
                self._streams.clear()
            self._streams[name] = (record, now_s)
        return record

    def _operation(self, call: PlainAppend) -> AppendRows | None:
        gateway, headers = self._gateway, call.headers
        token = gateway.tokens.find(headers.get("authorization", ""))
        if token is None or not token.may(("append",)):
            return None
        if headers.get(PROTOCOL_HEADER.lower(), str(PROTOCOL)) != str(PROTOCOL):
            return None
        content_type = headers.get("content-type", "")
        if content_type not in (JSON_LINES, ARROW, CSV):
            return None
        producer, sequence = producer_of(
            headers.get("penstock-producer"), headers.get("penstock-sequence")
        )
        stream = self._stream(call.stream)
        place = None if stream.key else gateway.next_turn(stream)
        # Rows that unpack to much take the way through a thread.
        rows_bytes_max = min(LIGHT_ROWS_BYTES, gateway.settings.request_bytes_max)
        bounds = Bounds(gateway.settings.entry_bytes_max, rows_bytes_max)
        drafts = row_drafts(
            call.body, content_type, gateway.schemas, stream, place, stream.key, bounds
        )
        shape = shape_of(stream, None if place is not None else stream.substreams)
        return AppendRows(stream.name, drafts, producer, sequence, shape)
