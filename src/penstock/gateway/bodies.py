"""Request bodies on their way into memory: each bounded, and all of them together.

Room is taken for the bytes that have come, not for those that were announced: who sends nothing
holds nothing. When there is none left, bodies wait in the order in which they began, and the oldest
may always go on, so that there is one that ends.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from penstock.gateway.connections import Connection
from penstock.gateway.parse import bad_request, request_too_large

SMALL_BYTES = 64 << 10
"""Of a body that needs no room: `connections_max` bounds how much they come to."""


class BodyMemory:
    """Room for the bodies of one server. Used on its event loop only."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[Body, int] = {}
        self._held_bytes = 0
        self._freed = asyncio.Event()

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    async def hold(self, body: Body, size: int) -> None:
        """Wait until there is room for `size` bytes of a body, or it is the oldest."""
        held = self._held.setdefault(body, 0)
        while self._held_bytes - held + size > self._bytes_max and body is not next(
            iter(self._held)
        ):
            self._freed.clear()
            await self._freed.wait()
        self._held_bytes += size - held
        self._held[body] = size

    def free(self, body: Body) -> None:
        self._held_bytes -= self._held.pop(body, 0)
        self._freed.set()


class Body:
    """One request's body: `async with` reads it whole, and gives its room back at the end."""

    def __init__(
        self,
        request: web.Request,
        connection: Connection | None,
        memory: BodyMemory,
        bytes_max: int,
    ) -> None:
        self._request = request
        self._connection = connection
        self._memory = memory
        self._bytes_max = bytes_max

    async def __aenter__(self) -> bytes:
        """Read it; one over the bound is refused, by its length before it is read."""
        length = self._request.content_length
        if length is not None and length > self._bytes_max:
            raise request_too_large(self._bytes_max)
        content = self._request.content
        is_small = length is not None and length <= min(SMALL_BYTES, self._bytes_max)
        try:
            if is_small and "Content-Encoding" not in self._request.headers:
                if not content.is_eof():
                    self._reading(True)
                return await content.read()
            return await self._read_pieces()
        except asyncio.IncompleteReadError:
            raise bad_request("the body ended before its length; send it again") from None
        finally:
            self._reading(False)

    async def _read_pieces(self) -> bytes:
        pieces: list[bytes] = []
        size = 0
        try:
            while True:
                self._reading(True)
                piece = await self._request.content.readany()
                if not piece:
                    return b"".join(pieces)
                size += len(piece)
                if size > self._bytes_max:
                    raise request_too_large(self._bytes_max)
                pieces.append(piece)
                self._reading(False)
                await self._memory.hold(self, size)
        except BaseException:
            self._memory.free(self)
            raise

    def _reading(self, is_reading: bool) -> None:
        if self._connection is not None:
            self._connection.is_reading = is_reading

    async def __aexit__(self, *_: object) -> None:
        self._memory.free(self)
