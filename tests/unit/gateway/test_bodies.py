"""Bodies are held within a bound of bytes, whoever sends them and however slowly."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from penstock.errors import BadCall
from penstock.gateway.bodies import SMALL_BYTES, Body, BodyMemory

PIECE = 100 << 10


class Content:
    """The stream of a request's body, fed by hand."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()

    def feed(self, piece: bytes) -> None:
        self._pieces.put_nowait(piece)

    def is_eof(self) -> bool:
        return False

    async def readany(self) -> bytes:
        return await self._pieces.get()

    async def read(self) -> bytes:
        whole = b""
        while piece := await self.readany():
            whole += piece
        return whole


class Request:
    """As much of a request as a body is read from."""

    def __init__(self, length: int | None, headers: dict[str, str] | None = None) -> None:
        self.content = Content()
        self.content_length = length
        self.headers = headers or {}


class Upload:
    """A request on its way: begun, fed, and answered when the test says so."""

    def __init__(self, memory: BodyMemory, request: Request, bytes_max: int = 1 << 30) -> None:
        self.request = request
        self._body = Body(cast("Any", request), None, memory, bytes_max)
        self._answered = asyncio.Event()
        self.has_come = asyncio.Event()
        self.task = asyncio.ensure_future(self._handle())

    async def _handle(self) -> int:
        async with self._body as body:
            self.has_come.set()
            await self._answered.wait()
            return len(body)

    async def feed(self, pieces: int, *, end: bool = False) -> None:
        for _ in range(pieces):
            self.request.content.feed(b"x" * PIECE)
        if end:
            self.request.content.feed(b"")
        await turns()

    async def answer(self) -> int:
        self._answered.set()
        return await self.task


async def turns() -> None:
    """Let everything happen that can."""
    for _ in range(50):
        await asyncio.sleep(0)


def test_an_upload_that_announces_much_and_sends_little_holds_little() -> None:
    async def story() -> None:
        memory = BodyMemory(10 * PIECE)
        stalled = [Upload(memory, Request(1 << 29)) for _ in range(5)]
        for upload in stalled:
            await upload.feed(1)
        assert memory.held_bytes == 5 * PIECE
        quick = Upload(memory, Request(4 * PIECE))
        await quick.feed(4, end=True)
        assert await quick.answer() == 4 * PIECE
        assert memory.held_bytes == 5 * PIECE
        for upload in stalled:
            upload.task.cancel()
        await turns()
        assert memory.held_bytes == 0

    asyncio.run(story())


def test_at_the_bound_the_oldest_goes_on_and_the_others_wait_their_turn() -> None:
    async def story() -> None:
        memory = BodyMemory(6 * PIECE)
        uploads = [Upload(memory, Request(None)) for _ in range(3)]
        for upload in uploads:
            await upload.feed(2)
        assert memory.held_bytes == 6 * PIECE
        for upload in uploads:
            await upload.feed(2, end=True)
        assert [upload.has_come.is_set() for upload in uploads] == [True, False, False]
        assert memory.held_bytes <= 8 * PIECE
        for upload in uploads:
            assert await upload.answer() == 4 * PIECE
        assert memory.held_bytes == 0

    asyncio.run(story())


def test_a_small_body_needs_no_room() -> None:
    async def story() -> None:
        memory = BodyMemory(PIECE)
        large = Upload(memory, Request(None))
        await large.feed(3)
        small = Upload(memory, Request(SMALL_BYTES))
        small.request.content.feed(b"x" * SMALL_BYTES)
        small.request.content.feed(b"")
        assert await small.answer() == SMALL_BYTES
        large.task.cancel()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("length", "headers"), [(None, {}), (10, {"Content-Encoding": "gzip"})], ids=["chunks", "gzip"]
)
def test_a_body_larger_than_it_said_is_refused_while_it_comes(
    length: int | None, headers: dict[str, str]
) -> None:
    async def story() -> None:
        memory = BodyMemory(1 << 30)
        upload = Upload(memory, Request(length, headers), bytes_max=3 * PIECE)
        await upload.feed(4)
        with pytest.raises(BadCall) as refused:
            await upload.task
        assert refused.value.code == "request_too_large"
        assert memory.held_bytes == 0

    asyncio.run(story())
