"""The client's calls about streams: making, finding and altering them, and their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from penstock.client.wire import Wire
from penstock.errors import BadCall
from penstock.model.answers import Position, StreamDescription, StreamList
from penstock.model.requests import AlterBody, StreamBody
from penstock.model.schema import added, from_base64, schema_of, to_base64


class Stream(NamedTuple):
    """A stream as the server describes it; positions and counts are of the moment of asking.

    `version` counts the times columns were added. `age_ms_max` and `bytes_max` are how long and how
    many of its rows are kept while nobody is registered to read it; None: for ever, all.
    """

    name: str
    schema: pa.Schema
    ddl: str
    substreams: int
    key: tuple[str, ...]
    earliest: int
    latest: int
    rows: int
    bytes: int
    version: int = 0
    age_ms_max: int | None = None
    bytes_max: int | None = None


class StreamCalls:
    """The part of a client that speaks of streams, and knows their columns."""

    _wire: Wire
    _schemas: dict[str, pa.Schema]
    _first_columns: dict[str, int]

    def create(
        self,
        stream: str,
        schema: str | pa.Schema,
        *,
        substreams: int | None = None,
        key: Sequence[str] | str | None = None,
    ) -> Stream:
        """Create a stream, or find the one with the same schema; another one is an error.

        `schema` is an Arrow schema or text such as "auction bigint, at timestamp". Rows with equal
        `key` columns go to one substream, where they keep their order.
        """
        is_text = isinstance(schema, str)
        columns = [key] if isinstance(key, str) else key
        body = StreamBody(
            None if is_text else to_base64(schema),
            schema if is_text else None,
            substreams,
            None if columns is None else list(columns),
        )
        got = self._wire.request("PUT", ("streams", stream), body=msgspec.json.encode(body))
        return self._learn(got.as_kind(StreamDescription))

    def streams(self) -> list[Stream]:
        got = self._wire.request("GET", ("streams",)).as_kind(StreamList)
        return [self._learn(description) for description in got.streams]

    def describe(self, stream: str) -> Stream:
        got = self._wire.request("GET", ("streams", stream))
        return self._learn(got.as_kind(StreamDescription))

    def alter(
        self,
        stream: str,
        *,
        add: str | None = None,
        substreams: int | None = None,
        age_ms_max: int | None = None,
        bytes_max: int | None = None,
    ) -> Stream:
        """Add columns at the end ("note string"), or substreams, or say how long rows are kept
        while nobody is registered to read them (0: for ever). Running readers and writers go on
        with the columns they know; anything that would lose data is refused, and so is a change of
        a stream that somebody else alters meanwhile."""
        described = self._wire.request("GET", ("streams", stream)).as_kind(StreamDescription)
        schema = None
        if add is not None:
            schema = to_base64(added(from_base64(described.schema), schema_of(add)))
        body = AlterBody(
            None, schema, None, substreams, age_ms_max, bytes_max, described.id, described.revision
        )
        got = self._wire.request("PATCH", ("streams", stream), body=msgspec.json.encode(body))
        return self._learn(got.as_kind(StreamDescription))

    def position(self, stream: str, *, at: str | None = None, time_ms: int | None = None) -> int:
        """The `earliest` or `latest` position, or the one before the first commit at a time."""
        if at is not None and time_ms is not None:
            raise BadCall("give at or time_ms, not both", code="bad_request")
        query = {"time_ms": time_ms} if time_ms is not None else {"at": at or "latest"}
        got = self._wire.request("GET", ("streams", stream, "position"), query)
        return got.as_kind(Position).position

    def schema(self, stream: str) -> pa.Schema:
        """A stream's schema as this client knows it: columns added since it asked are left out of
        what it reads; `describe` asks again."""
        known = self._schemas.get(stream)
        return known if known is not None else self.describe(stream).schema

    def _learn(self, described: StreamDescription) -> Stream:
        schema = from_base64(described.schema)
        first_columns = described.first_columns
        self._schemas[described.name] = schema
        self._first_columns[described.name] = (
            len(schema) if first_columns is None else first_columns
        )
        return Stream(
            described.name,
            schema,
            described.ddl,
            described.substreams,
            described.key,
            described.earliest,
            described.latest,
            described.rows,
            described.bytes,
            described.version,
            described.age_ms_max,
            described.bytes_max,
        )
