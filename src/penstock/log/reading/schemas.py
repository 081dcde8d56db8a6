"""Schemas of streams, each decoded once."""

from __future__ import annotations

import pyarrow as pa

from penstock.log.state import StreamRecord


class StreamSchemas:
    """The columns that streams have and had. A stream's id and version never mean other columns,
    so what is kept is never stale. Any thread."""

    def __init__(self) -> None:
        self._schemas: dict[tuple[int, int], pa.Schema] = {}

    def current(self, stream: StreamRecord) -> pa.Schema:
        """The stream's schema as the record has it."""
        return self.version(stream, len(stream.versions))

    def first(self, stream: StreamRecord) -> pa.Schema:
        """The schema that the stream was made with."""
        return self.version(stream, 0)

    def version(self, stream: StreamRecord, version: int) -> pa.Schema:
        """A schema that the stream has or had."""
        key = (stream.id, version)
        if key not in self._schemas:
            message = (*stream.versions, stream.schema)[version]
            self._schemas[key] = pa.ipc.read_schema(pa.py_buffer(message))
        return self._schemas[key]
