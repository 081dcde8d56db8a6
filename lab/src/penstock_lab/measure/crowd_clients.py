"""Worker: a crowd at a server. Queries that are held, tags that are read all at once, readers that
ask for much and take nothing. It prints when it is complete, and goes on until it is ended."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from penstock.client.address import token_from_environment

CONNECTIONS = 100
"""On which all tags are asked for at once, one request after the other without waiting."""
HOLD_MS = 1_000
PAGE_BYTES = 8 << 20


class Crowd:
    """The clients of the crowd, on one event loop."""

    def __init__(self, options: dict[str, Any]) -> None:
        parts = urlsplit(options["url"])
        self._address = (parts.hostname, parts.port)
        self._streams: Sequence[str] = options["streams"]
        self._queries, self._tags = int(options["queries"]), int(options["tags"])
        self._readers = int(options["readers"])
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    def _request(self, method: str, path: str, body: bytes = b"") -> bytes:
        head = (
            f"{method} /v1{path} HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n"
            f"Authorization: Bearer {token_from_environment()}\r\n\r\n"
        )
        return head.encode("ascii") + body

    async def run(self) -> None:
        begun = [asyncio.Event() for _ in range(self._queries + CONNECTIONS)]
        work = [self._poll(number, begun[number]) for number in range(self._queries)]
        work += [self._read_tags(n, begun[self._queries + n]) for n in range(CONNECTIONS)]
        tasks = [asyncio.ensure_future(each) for each in work]
        for number in range(self._readers):
            await self._take_nothing(number)
        for event in begun:
            await event.wait()
        print(json.dumps({"complete": len(self._idle) + len(tasks)}), flush=True)
        await asyncio.gather(*tasks)

    async def _take_nothing(self, number: int) -> None:
        stream = self._streams[number % len(self._streams)]
        reader, writer = await asyncio.open_connection(*self._address, limit=1024)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(self._request("GET", f"/streams/{stream}/rows?bytes={PAGE_BYTES}"))
        self._idle.append((reader, writer))

    async def _poll(self, number: int, begun: asyncio.Event) -> None:
        stream = self._streams[number % len(self._streams)]
        reader, writer = await asyncio.open_connection(*self._address)
        latest = 0
        while True:
            asked = {"stream": stream, "after": latest, "wait_ms": HOLD_MS}
            writer.write(self._request("POST", "/admission", json.dumps(asked).encode()))
            latest = json.loads(await self._answer(reader))["latest"]
            begun.set()

    async def _read_tags(self, number: int, begun: asyncio.Event) -> None:
        tags = range(number, self._tags, CONNECTIONS)
        requests = b"".join(self._request("GET", f"/records?tag=tag-{tag}") for tag in tags)
        reader, writer = await asyncio.open_connection(*self._address)
        while True:
            writer.write(requests)
            for _ in tags:
                if b'"records":[{' not in await self._answer(reader):
                    raise AssertionError("a tag has no record")
            begun.set()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise AssertionError(head)
        _, _, rest = head.lower().partition(b"content-length:")
        return await reader.readexactly(int(rest.partition(b"\r\n")[0]))


if __name__ == "__main__":
    asyncio.run(Crowd(json.loads(sys.argv[1])).run())
