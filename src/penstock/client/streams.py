"""The client's calls about streams: making, finding and altering them, and their positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from penstock.client.values import Stream
from penstock.client.wire import Wire
from penstock.errors import BadCall
from penstock.model.schema import from_base64, to_base64


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
        body: dict[str, Any] = (
            {"ddl": schema} if isinstance(schema, str) else {"schema": to_base64(schema)}
        )
        if substreams is not None:
            body["substreams"] = substreams
        if key is not None:
            body["key"] = [key] if isinstance(key, str) else list(key)
        got = self._wire.request("PUT", ("streams", stream), body=msgspec.json.encode(body))
        return self._learn(got.json())

    def streams(self) -> list[Stream]:
        return [
            self._learn(one) for one in self._wire.request("GET", ("streams",)).json()["streams"]
        ]

    def describe(self, stream: str) -> Stream:
        return self._learn(self._wire.request("GET", ("streams", stream)).json())

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
        with the columns they know; anything that would lose data is refused."""
        body = {
            "add": add,
            "substreams": substreams,
            "age_ms_max": age_ms_max,
            "bytes_max": bytes_max,
        }
        sent = {name: value for name, value in body.items() if value is not None}
        got = self._wire.request("PATCH", ("streams", stream), body=msgspec.json.encode(sent))
        return self._learn(got.json())

    def position(self, stream: str, *, at: str | None = None, time_ms: int | None = None) -> int:
        """The `earliest` or `latest` position, or the one before the first commit at a time."""
        if at is not None and time_ms is not None:
            raise BadCall("give at or time_ms, not both", code="bad_request")
        query = {"time_ms": time_ms} if time_ms is not None else {"at": at or "latest"}
        return int(
            self._wire.request("GET", ("streams", stream, "position"), query).json()["position"]
        )

    def schema(self, stream: str) -> pa.Schema:
        """A stream's schema as this client knows it: columns added since it asked are left out of
        what it reads; `describe` asks again."""
        known = self._schemas.get(stream)
        return known if known is not None else self.describe(stream).schema

    def _learn(self, told: Mapping[str, Any]) -> Stream:
        schema = from_base64(told["schema"])
        self._schemas[told["name"]] = schema
        self._first_columns[told["name"]] = int(told.get("first_columns", len(schema)))
        counts = {name: int(told[name]) for name in ("earliest", "latest", "rows", "bytes")}
        return Stream(
            name=told["name"],
            schema=schema,
            ddl=told["ddl"],
            substreams=int(told["substreams"]),
            key=tuple(told["key"]),
            version=int(told.get("version", 0)),
            age_ms_max=told.get("age_ms_max"),
            bytes_max=told.get("bytes_max"),
            **counts,
        )
