"""Output buffers of a task: its rows as bytes, one buffer for each output substream."""

from __future__ import annotations

import struct

import msgspec

from penstock_lab.baselines.task_graph.messages import Row, Rows, encode

BUFFER_BYTES = 128 << 10
_encoder = msgspec.msgpack.Encoder()
_ARRAY = struct.Struct(">BI")
_ARRAY_32 = 0xDD


class OutputBuffer:
    """Buffers by substream. `put` says when a buffer is full; then it is the caller's turn."""

    def __init__(self, substreams: int, buffer_bytes: int = BUFFER_BYTES) -> None:
        self._buffers = [bytearray() for _ in range(substreams)]
        self._counts = [0] * substreams
        self._buffer_bytes = buffer_bytes

    def put(self, substream: int, row: Row) -> bool:
        """Keep the row; True if the buffer now has its size."""
        buffer = self._buffers[substream]
        _encoder.encode_into(row, buffer, -1)
        self._counts[substream] += 1
        return len(buffer) >= self._buffer_bytes

    @property
    def filled(self) -> list[int]:
        """The substreams with rows."""
        return [substream for substream, count in enumerate(self._counts) if count]

    def take(self, substream: int, clock_us: int, epoch: int = 0) -> bytes:
        """The payload of what is buffered, which is empty from now on."""
        count, body = self._counts[substream], self._buffers[substream]
        rows = msgspec.Raw(_ARRAY.pack(_ARRAY_32, count) + body)
        self._buffers[substream], self._counts[substream] = bytearray(), 0
        return encode(Rows(clock_us, rows, epoch))
