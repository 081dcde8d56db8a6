"""The client's calls that look after a log: consumers, alterations, trims, deletions, backups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import uuid4

import msgspec

from penstock.client.wire import Wire
from penstock.model.answers import (
    Admission,
    Collected,
    ConsumerDescription,
    ConsumerList,
    ForgottenStreams,
    MovedPositions,
    Position,
    StreamDescription,
    TrimmedRows,
)
from penstock.model.query_answers import NewInstance, QueryDescription
from penstock.model.requests import (
    AdmissionBody,
    MoveBody,
    MovesBody,
    OtherStream,
    RegisterBody,
    ResetBody,
    TrimBody,
)


class MaintenanceCalls:
    """The part of a client that looks after streams, queries and consumers."""

    _wire: Wire

    def consumers(self, *, away: bool = False) -> list[ConsumerDescription]:
        """Groups and queries: their positions, how far each is behind, and who stays away, since
        when; with `away` only those, the longest first."""
        asked = {"away": "true"} if away else {}
        got = self._wire.request("GET", ("consumers",), asked)
        return list(got.as_kind(ConsumerList).consumers)

    def register(self, group: str, stream: str, start: str | int = "earliest") -> int:
        """Hold a stream for a group; its position, which is `start` only if it is new."""
        body = msgspec.json.encode(RegisterBody(start))
        got = self._wire.request("PUT", ("consumers", group, "streams", stream), body=body)
        return got.as_kind(Position).position

    def move(
        self, group: str, moves: Mapping[str, tuple[int | None, int | None]]
    ) -> dict[str, int]:
        """Move a group in several streams at once: for each the new position and the one it is
        thought to have, or None for either. Returns where it is."""
        named = {stream: MoveBody(*positions) for stream, positions in moves.items()}
        body = msgspec.json.encode(MovesBody(named))
        got = self._wire.request("POST", ("consumers", group, "positions"), body=body)
        return dict(got.as_kind(MovedPositions).positions)

    def forget(self, group: str, stream: str | None = None) -> list[str]:
        """Hold nothing for a group any more; the streams it was in."""
        got = self._wire.request("DELETE", ("consumers", group), {"stream": stream})
        return list(got.as_kind(ForgottenStreams).forgotten)

    def admit(
        self,
        stream: str,
        after: int,
        *,
        bytes_max: int | None = None,
        others: Mapping[str, int] | None = None,
        wait_ms: int = 0,
    ) -> tuple[int, int]:
        """The end of a batch after a position, and the latest position; held up to `wait_ms`
        while neither this stream nor one of `others` has anything new."""
        body = AdmissionBody(
            stream,
            after,
            bytes_max=bytes_max,
            others=[OtherStream(name, position) for name, position in (others or {}).items()],
            wait_ms=wait_ms,
        )
        got = self._wire.request(
            "POST", ("admission",), body=msgspec.json.encode(body), hold_s=wait_ms / 1000
        )
        admission = got.as_kind(Admission)
        return admission.end, admission.latest

    def delete_stream(self, stream: str, *, force: bool = False) -> None:
        """Delete a stream and its rows; refused while anyone uses it, unless forced. Of a stream
        that is made under the name meanwhile nothing is deleted."""
        described = self._wire.request("GET", ("streams", stream)).as_kind(StreamDescription)
        named = {"force": int(force), "id": described.id}
        self._wire.request("DELETE", ("streams", stream), named)

    def trim(self, stream: str, until: int) -> TrimmedRows:
        """Remove rows up to a position now; refused if a consumer or query still needs them."""
        body = msgspec.json.encode(TrimBody(until))
        got = self._wire.request("POST", ("streams", stream, "trim"), body=body)
        return got.as_kind(TrimmedRows)

    def collect(self) -> Collected:
        """Trim what nobody needs, without waiting for the server's next time."""
        return self._wire.request("POST", ("collect",)).as_kind(Collected)

    def reset_query(self, query: str) -> int:
        """Fence a query and forget its batches; its new instance. Give it a new checkpoint."""
        body = msgspec.json.encode(ResetBody(f"reset-{uuid4().hex}"))
        got = self._wire.request("POST", ("queries", query, "reset"), body=body)
        return got.as_kind(NewInstance).instance

    def delete_query(self, query: str) -> None:
        """Forget a query; what it made visible stays. One that is taken over meanwhile is left."""
        described = self._wire.request("GET", ("queries", query)).as_kind(QueryDescription)
        self._wire.request("DELETE", ("queries", query), {"instance": described.instance})

    def backup(self) -> Iterator[bytes]:
        """The log's file as it is at one moment, in pieces; appends go on meanwhile."""
        return self._wire.stream("GET", ("backup",))
