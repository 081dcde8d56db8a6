"""Calls between processes of one machine: messages of MessagePack on a socket, many under way.

A message is its length and then `[call, …]`. A caller numbers its calls from 1 and gets the number
back with the answer; 0 is a push, which nobody asked for by number, or a call that asks for no
answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import BadCall, Bug, PenstockError, TryAgain, from_wire, to_wire

MESSAGE_BYTES_MAX = 256 << 20
_LENGTH = struct.Struct("<I")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def encoded_message(body: Any) -> bytes:
    encoded = _encode(body)
    return _LENGTH.pack(len(encoded)) + encoded


class MessageDecoder:
    """Cuts a stream of bytes into messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        self._bytes += data
        start = 0
        while len(self._bytes) - start >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._bytes, start)
            if size > MESSAGE_BYTES_MAX:
                raise BadCall(f"a message of {size} bytes is not one of ours", code="bad_request")
            end = start + _LENGTH.size + size
            if len(self._bytes) < end:
                break
            yield _decode(memoryview(self._bytes)[start + _LENGTH.size : end].tobytes())
            start = end
        del self._bytes[:start]


class Answering(asyncio.Protocol):
    """The side that is called. `handle` gets this, the call's number, its name and arguments."""

    def __init__(self, handle: Callable[[Answering, int, str, list[Any]], None]) -> None:
        self._handle = handle
        self._decoder = MessageDecoder()
        self._transport: asyncio.Transport | None = None
        self._is_full = False
        self._untaken: list[Callable[[], None]] = []
        self.on_lost: list[Callable[[], None]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.resume_writing()
        for call in self.on_lost:
            call()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        calls, self._untaken = self._untaken, []
        for call in calls:
            call()

    def when_taken(self, call: Callable[[], None]) -> None:
        """Call once the other side takes what is written: at once, unless it has fallen behind."""
        if self._is_full:
            self._untaken.append(call)
        else:
            call()

    def data_received(self, data: bytes) -> None:
        for number, name, *arguments in self._decoder.feed(data):
            try:
                self._handle(self, number, name, arguments)
            except PenstockError as error:
                self.refuse(number, error)

    def answer(self, number: int, value: Any) -> None:
        if number:
            self._write(encoded_message([number, True, value]))

    def refuse(self, number: int, error: BaseException) -> None:
        if number:
            self._write(encoded_message([number, False, _on_wire(error)]))

    def fail(self, name: int, error: BaseException) -> None:
        """Nothing more will be pushed as `name`: say why, and hang up."""
        self._write(encoded_message([0, name, None, _on_wire(error)]))
        if self._transport is not None:
            self._transport.close()

    def push(self, body: bytes) -> None:
        """A message made elsewhere, of `[0, …]`."""
        self._write(body)

    def _write(self, message: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(message)


class Calling(asyncio.Protocol):
    """The side that calls. When the connection is lost, what is under way fails with `TryAgain`."""

    def __init__(self) -> None:
        self._decoder = MessageDecoder()
        self._transport: asyncio.Transport | None = None
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self.on_push: Callable[[list[Any]], None] = lambda body: None
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if not self.lost.done():
            self.lost.set_result(None)
        under_way, self._open = self._open, {}
        for future in under_way.values():
            if not future.done():
                future.set_exception(_gone())

    def data_received(self, data: bytes) -> None:
        for number, *rest in self._decoder.feed(data):
            if number == 0:
                self.on_push(rest)
                continue
            future = self._open.pop(number, None)
            if future is None or future.done():
                continue
            is_right, value = rest
            if is_right:
                future.set_result(value)
            else:
                future.set_exception(from_wire(value, value["status"]))

    def call(self, name: str, *arguments: Any) -> asyncio.Future[Any]:
        """Send at once; the answer comes through the future."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._transport is None:
            future.set_exception(_gone())
            return future
        self._number += 1
        self._open[self._number] = future
        self._transport.write(encoded_message([self._number, name, *arguments]))
        return future

    def tell(self, name: str, *arguments: Any) -> None:
        """A call that asks for no answer, and is lost with the connection."""
        if self._transport is not None:
            self._transport.write(encoded_message([0, name, *arguments]))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def call_to(path: Path) -> Calling:
    loop = asyncio.get_running_loop()
    try:
        _, calling = await loop.create_unix_connection(Calling, str(path))
    except OSError as error:
        raise TryAgain(f"nobody answers at {path}: {error}; start it", code="gone") from error
    return calling


async def answer_at(
    path: Path, handle: Callable[[Answering, int, str, list[Any]], None]
) -> asyncio.Server:
    """Listen on a socket in place of one that a killed process may have left."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    loop = asyncio.get_running_loop()
    return await loop.create_unix_server(lambda: Answering(handle), str(path))


def _on_wire(error: BaseException) -> dict[str, Any]:
    if not isinstance(error, PenstockError):
        error = Bug(f"{type(error).__name__}: {error}; report this", code="bug")
    return {**to_wire(error), "status": error.http_status}


def _gone() -> TryAgain:
    return TryAgain("the other side is gone; connect again", code="gone")
