"""The client's calls that look after a log: consumers, alterations, trims, deletions, backups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from penstock.client.wire import Wire


class UpkeepCalls:
    """The part of a client that looks after streams, queries and consumers."""

    _wire: Wire

    def consumers(self, *, away: bool = False) -> list[dict[str, Any]]:
        """Groups and queries: their positions, how far each is behind, and who stays away, since
        when; with `away` only those, the longest first."""
        asked = {"away": "true"} if away else {}
        return list(self._wire.request("GET", ("consumers",), asked).json()["consumers"])

    def register(self, group: str, stream: str, start: str | int = "earliest") -> int:
        """Hold a stream for a group; its position, which is `start` only if it is new."""
        body = msgspec.json.encode({"start": start})
        got = self._wire.request("PUT", ("consumers", group, "streams", stream), body=body)
        return int(got.json()["position"])

    def move(
        self, group: str, moves: Mapping[str, tuple[int | None, int | None]]
    ) -> dict[str, int]:
        """Move a group in several streams at once: for each the new position and the one it is
        thought to have, or None for either. Returns where it is."""
        named = {
            stream: {"position": position, "expect": expect}
            for stream, (position, expect) in moves.items()
        }
        body = msgspec.json.encode({"streams": named})
        got = self._wire.request("POST", ("consumers", group, "positions"), body=body)
        return {name: int(position) for name, position in got.json()["positions"].items()}

    def forget(self, group: str, stream: str | None = None) -> list[str]:
        """Hold nothing for a group any more; the streams it was in."""
        got = self._wire.request("DELETE", ("consumers", group), {"stream": stream})
        return list(got.json()["forgotten"])

    def admit(
        self,
        stream: str,
        after: int,
        *,
        bytes_max: int | None = None,
        others: Mapping[str, int] | None = None,
        wait_ms: int = 0,
    ) -> tuple[int, int]:
        """How far a batch after a position may read, and the latest position; held up to `wait_ms`
        while neither this stream nor one of `others` has anything new."""
        asked = {
            "stream": stream,
            "after": after,
            "bytes_max": bytes_max,
            "others": [{"stream": name, "after": at} for name, at in (others or {}).items()],
            "wait_ms": wait_ms,
        }
        got = self._wire.request(
            "POST", ("admission",), body=msgspec.json.encode(asked), hold_s=wait_ms / 1000
        ).json()
        return int(got["end"]), int(got["latest"])

    def delete_stream(self, stream: str, *, force: bool = False) -> None:
        """Delete a stream and its rows; refused while anyone uses it, unless forced."""
        self._wire.request("DELETE", ("streams", stream), {"force": int(force)})

    def trim(self, stream: str, until: int) -> dict[str, int]:
        """Remove rows up to a position now; refused if a consumer or query still needs them."""
        body = msgspec.json.encode({"until": until})
        return dict(self._wire.request("POST", ("streams", stream, "trim"), body=body).json())

    def collect(self) -> dict[str, int]:
        """Trim what nobody needs, without waiting for the server's next time."""
        return dict(self._wire.request("POST", ("collect",)).json())

    def reset_query(self, query: str) -> int:
        """Fence a query and forget its batches; its new instance. Give it a new checkpoint."""
        return int(self._wire.request("POST", ("queries", query, "reset")).json()["instance"])

    def delete_query(self, query: str) -> None:
        """Forget a query; what it made visible stays."""
        self._wire.request("DELETE", ("queries", query))

    def backup(self) -> Iterator[bytes]:
        """The log's file as it is at one moment, in pieces; appends go on meanwhile."""
        return self._wire.stream("GET", ("backup",))
