"""Bodies are held within a bound of bytes, whoever sends them and however slowly."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from penstock.errors import BadCall, TryAgain
from penstock.gateway.bodies import SHORT_BYTES, SMALL_BYTES, Body, BodyMemory

PIECE = 100 << 10
PRESSED_S = 0.05
LATE_S = 60.0


class Content:
    """The stream of a request's body, fed by hand."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes | Exception] = asyncio.Queue()

    def feed(self, piece: bytes | Exception) -> None:
        self._pieces.put_nowait(piece)

    def is_eof(self) -> bool:
        return False

    async def readany(self) -> bytes:
        piece = await self._pieces.get()
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def read(self) -> bytes:
        whole = b""
        while piece := await self.readany():
            whole += piece
        return whole


class Sender:
    """The connection of an upload, which may be told that it is refused."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self.is_reading = False
        self.refusal: TryAgain | None = None

    def refuse(self, refusal: TryAgain) -> None:
        self.refusal = refusal
        self._content.feed(ConnectionResetError())


class Request:
    """As much of a request as a body is read from."""

    def __init__(self, length: int | None, headers: dict[str, str] | None = None) -> None:
        self.content = Content()
        self.content_length = length
        self.headers = headers or {}


class Upload:
    """A request on its way: begun, fed, and answered when the test says so."""

    def __init__(
        self,
        memory: BodyMemory,
        request: Request,
        bytes_max: int = 1 << 30,
        *,
        may_be_ended: bool = False,
    ) -> None:
        self.request = request
        self.sender = Sender(request.content)
        connection = cast("Any", self.sender) if may_be_ended else None
        self.body = Body(cast("Any", request), connection, memory, bytes_max)
        self._answered = asyncio.Event()
        self.has_come = asyncio.Event()
        self.task = asyncio.ensure_future(self._handle())

    @property
    def is_ended(self) -> bool:
        return self.sender.refusal is not None

    async def _handle(self) -> int:
        async with self.body as body:
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
            await asyncio.wait_for(upload.task, LATE_S)
        assert refused.value.code == "request_too_large"
        assert memory.held_bytes == 0

    asyncio.run(story())


def stalled(memory: BodyMemory, length: int | None = None) -> Upload:
    return Upload(memory, Request(length), may_be_ended=True)


def test_the_one_that_stands_still_longest_is_ended_when_another_waits() -> None:
    async def story() -> None:
        memory = BodyMemory(6 * PIECE, PRESSED_S)
        first, second = stalled(memory), stalled(memory)
        await first.feed(3)
        await second.feed(3)
        await asyncio.sleep(2 * PRESSED_S)
        assert not first.is_ended, "nobody waits"
        third = Upload(memory, Request(None))
        await third.feed(2, end=True)
        await asyncio.wait_for(third.has_come.wait(), LATE_S)
        refusal = first.sender.refusal
        assert refusal is not None
        assert (refusal.code, refusal.http_status) == ("too_slow", 408)
        assert "others waited for the memory it holds" in refusal.message
        assert not second.is_ended, "there is room without it"
        with pytest.raises(ConnectionResetError):
            await first.task
        assert memory.held_bytes == 5 * PIECE
        assert await third.answer() == 2 * PIECE
        second.task.cancel()
        await turns()
        assert memory.held_bytes == 0

    asyncio.run(story())


def test_one_that_trickles_stands_still_and_one_that_is_being_answered_does_not() -> None:
    async def story() -> None:
        memory = BodyMemory(7 * PIECE + PIECE // 2, PRESSED_S)
        answering = stalled(memory)
        await answering.feed(3, end=True)
        assert answering.has_come.is_set()
        trickling = stalled(memory)
        await trickling.feed(3)
        waiting = Upload(memory, Request(None))
        await waiting.feed(2, end=True)
        for _ in range(10_000):
            if trickling.sender.refusal is not None:
                break
            trickling.request.content.feed(b"x")
            await asyncio.sleep(PRESSED_S / 10)
        assert trickling.sender.refusal is not None
        await asyncio.wait_for(waiting.has_come.wait(), LATE_S)
        assert answering.sender.refusal is None
        assert await answering.answer() == 3 * PIECE
        assert await waiting.answer() == 2 * PIECE
        await asyncio.wait([trickling.task])
        assert trickling.task.exception() is not None

    asyncio.run(story())


def test_large_bodies_leave_room_for_short_ones() -> None:
    async def story() -> None:
        memory = BodyMemory(80 * PIECE)
        large = [Upload(memory, Request(None)) for _ in range(3)]
        for upload in large:
            await upload.feed(30)
        assert memory.held_bytes == 2 * 30 * PIECE + SHORT_BYTES // PIECE * PIECE
        short = Upload(memory, Request(None))
        await short.feed(9, end=True)
        assert await short.answer() == 9 * PIECE
        for upload in large:
            upload.task.cancel()

    asyncio.run(story())


def test_time_that_a_body_waits_for_room_is_not_its_senders() -> None:
    async def story() -> None:
        memory = BodyMemory(PIECE, PRESSED_S)
        before = Upload(memory, Request(None))
        await before.feed(1, end=True)
        waiting = stalled(memory)
        waiting.request.content.feed(b"x" * 10)
        await asyncio.sleep(20 * PRESSED_S)
        await before.answer()
        await turns()
        assert asyncio.get_running_loop().time() - waiting.body.moved_at_s < 10 * PRESSED_S
        assert waiting.sender.refusal is None
        waiting.task.cancel()

    asyncio.run(story())
