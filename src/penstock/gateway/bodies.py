"""Request bodies on their way into memory: each bounded, and all of them together.

Room is taken for the bytes that have come, not for those that were announced: who sends nothing
holds nothing. When there is none left:

1. bodies wait in the order in which they began, and the oldest may always go on, so that there is
   one that ends;
2. a part of the room is for bodies that are no longer than `SHORT_BYTES`, which large ones cannot
   take from them;
3. of those that are still on their way, the one that has stood still longest is ended, unless it
   brings `PACE_BYTES` in every `PRESSED_S`: others wait for what it holds.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from aiohttp import web

from penstock.errors import TryAgain
from penstock.gateway.connections import PACE_BYTES, Connection
from penstock.gateway.parse import bad_request, request_too_large

SMALL_BYTES = 64 << 10
"""Of a body that needs no room: `connections_max` bounds how much they come to."""
SHORT_BYTES = 1 << 20
SHORT_PART = 4
"""One part in so many of the room is for bodies no longer than `SHORT_BYTES`."""
PRESSED_S = 0.5
LOOKS = 4
"""How often, in `PRESSED_S`, one that waits looks for another that stands still."""


class BodyMemory:
    """Room for the bodies of one server. Used on its event loop only."""

    def __init__(self, bytes_max: int, pressed_s: float = PRESSED_S) -> None:
        self._bytes_max = bytes_max
        self._pressed_s = pressed_s
        self._held: dict[Body, int] = {}
        self._held_bytes = 0
        self._freed = asyncio.Event()

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    async def hold(self, body: Body, size: int) -> float:
        """Wait until there is room for `size` bytes of a body, or it is the oldest; how long that
        took is no fault of its sender."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        self._held.setdefault(body, 0)
        while not self._has_room(body, size):
            if self._end_slowest():
                continue
            self._freed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pressed_s / LOOKS):
                    await self._freed.wait()
        self._held_bytes += size - self._held[body]
        self._held[body] = size
        return loop.time() - began_s

    def _has_room(self, body: Body, size: int) -> bool:
        bound = self._bytes_max
        if size > SHORT_BYTES:
            bound -= bound // SHORT_PART
        others = self._held_bytes - self._held[body]
        return others + size <= bound or body is next(iter(self._held))

    def _end_slowest(self) -> bool:
        """End the body that holds room and has stood still longest; False if none stands still."""
        slowest = min(
            (body for body, size in self._held.items() if size and body.can_be_ended),
            key=lambda body: body.moved_at_s,
            default=None,
        )
        still_s = 0.0 if slowest is None else asyncio.get_running_loop().time() - slowest.moved_at_s
        if slowest is None or still_s < self._pressed_s:
            return False
        slowest.end(
            TryAgain(
                f"the request brought less than {PACE_BYTES} bytes in {still_s:.1f} s while others "
                "waited for the memory it holds (body_bytes_max); send it again, and faster",
                code="too_slow",
                status=408,
            )
        )
        self.free(slowest)
        return True

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
        self.moved_at_s = 0.0
        """When the last `PACE_BYTES` of it had come."""
        self._moved_bytes = 0
        self._is_reading = False
        self._refusal: TryAgain | None = None

    @property
    def can_be_ended(self) -> bool:
        """Whether the sender is waited for, and can be told."""
        return self._is_reading and self._connection is not None

    def end(self, refusal: TryAgain) -> None:
        """Refuse the body and close its connection; whoever reads it is told by that."""
        self._refusal = refusal
        if self._connection is not None:
            self._connection.refuse(refusal)

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
                self._note_pace(size)
                self._reading(True)
                piece = await self._request.content.readany()
                if self._refusal is not None:
                    raise self._refusal
                if not piece:
                    return b"".join(pieces)
                size += len(piece)
                if size > self._bytes_max:
                    raise request_too_large(self._bytes_max)
                pieces.append(piece)
                self._reading(False)
                self.moved_at_s += await self._memory.hold(self, size)
        except BaseException:
            self._memory.free(self)
            raise

    def _note_pace(self, size: int) -> None:
        if not size or size >= self._moved_bytes + PACE_BYTES:
            self.moved_at_s = asyncio.get_running_loop().time()
            self._moved_bytes = size

    def _reading(self, is_reading: bool) -> None:
        self._is_reading = is_reading
        if self._connection is not None:
            self._connection.is_reading = is_reading

    async def __aexit__(self, *_: object) -> None:
        self._memory.free(self)
