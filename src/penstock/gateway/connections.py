"""The connections of a server: how many there are, and how long each may take for what it moves.

Between every socket and the HTTP protocol stands a `Connection` that counts what comes in. Twice a
second all of them are looked at: who sends a request or takes an answer must move `PACE_BYTES` in
every `stall_s_max`, or be done, and who does nothing is kept for `idle_s_max`. A request that is
being answered is not timed: it may be held on purpose.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, cast

from aiohttp import web

from penstock.errors import PenstockError, TryAgain
from penstock.gateway.raw_answers import OnAnswer, good_answer, raw_answer
from penstock.gateway.whole_requests import is_one_request
from penstock.settings.server import Settings

PACE_BYTES = 64 << 10
LOOK_S = 0.5

BeginAppend = Callable[[bytes, OnAnswer], bool]


class Phase(Enum):
    """Phase of a connection: what it is doing, and so what it is given time for."""

    IDLE = "idle"
    RECEIVING = "receiving"
    ANSWERING = "answering"
    SENDING = "sending"


class Mark(NamedTuple):
    """The time at which a connection began its phase with a request, or had moved enough in it, and
    the bytes it had moved by then."""

    phase: Phase
    request: int
    at_s: float
    moved: int


class Connection(asyncio.Protocol):
    """One connection: passes everything on to the HTTP protocol, and counts what comes in."""

    def __init__(self, http: asyncio.Protocol, connections: Connections) -> None:
        self._http = http
        self._connections = connections
        self.transport: asyncio.Transport | None = None
        self.received = 0
        self.requests = 0
        self.is_answering = False
        self.is_reading = False
        """Whether the body of the request that is being answered is still on its way."""
        self.mark = Mark(Phase.IDLE, 0, asyncio.get_running_loop().time(), 0)
        self._answered_at = 0
        self._is_full = False
        self._is_simple = True
        """Whether all that was passed on came as whole requests, each after the answer to the one
        before: then, and only then, the next bytes begin a request."""
        self._ahead: bytes | None = None
        """What came while an append was on its short way; None while none is."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other event loops have transports of their own, alike in all but their class.
        if self.take_place(cast("asyncio.Transport", transport)):
            self._http.connection_made(transport)
        else:
            self._http = asyncio.Protocol()
            self.refuse(self._connections.refusal())

    def take_place(self, transport: asyncio.Transport) -> bool:
        """Be one of the connections of the server, if there is room for one more."""
        self.transport = transport
        return self._connections.admit(self, transport)

    def begin_over(self, transport: asyncio.Transport) -> None:
        """Begin with HTTP over this transport, in the place that is taken."""
        self._connections.change_transport(self, transport)
        self._http.connection_made(transport)

    def give_place_up(self) -> None:
        """Leave the connections of the server without having begun."""
        self._connections.lost(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.lost(self)
        self._http.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._ahead is not None:
            self._ahead += data
            if self.transport is not None:
                self.transport.pause_reading()
            return
        is_idle = self.received == self._answered_at
        self.received += len(data)
        if is_idle:
            self._connections.idle.pop(self, None)
            is_short = self._is_simple and not self._is_full
            if is_short and self._connections.begin_append(data, partial(self._end_append, data)):
                self.begin_answer()
                self._ahead = b""
                return
        self._is_simple = self._is_simple and is_idle and is_one_request(data)
        self._http.data_received(data)

    def _end_append(self, data: bytes, answered: Future[Any]) -> None:
        """Send the answer to an append that took the short way; if its stream was altered on the
        way, nothing was appended, and it takes the long one."""
        ahead, self._ahead = self._ahead, None
        if self.transport is None or self.transport.is_closing():
            return
        if ahead:
            self.transport.resume_reading()
        error = answered.exception()
        if isinstance(error, PenstockError) and error.code == "stream_altered":
            self.is_answering = False
            self._http.data_received(data)
        else:
            self.transport.write(
                raw_answer(error, "keep-alive") if error else good_answer(answered.result())
            )
            self.end_answer()
        if ahead:
            self.data_received(ahead)

    def eof_received(self) -> bool | None:
        return self._http.eof_received()

    def pause_writing(self) -> None:
        self._is_full = True
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._is_full = False
        self._http.resume_writing()

    def begin_answer(self) -> None:
        """A request has come: its head, at least."""
        self.is_answering = True
        self.requests += 1

    def end_answer(self) -> None:
        """The answer is handed over to be sent."""
        self.is_answering = self.is_reading = False
        self._answered_at = self.received
        self._connections.idle[self] = None

    def refuse(self, refusal: TryAgain) -> None:
        """Answer a request that has not come whole, and take no more of it."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(raw_answer(refusal))
            self.transport.close()

    @property
    def unsent_bytes(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    @property
    def phase(self) -> Phase:
        if self.unsent_bytes:
            return Phase.SENDING
        if self.is_answering:
            return Phase.RECEIVING if self.is_reading else Phase.ANSWERING
        return Phase.IDLE if self.received == self._answered_at else Phase.RECEIVING

    def is_late(self, now_s: float, settings: Settings) -> bool:
        """Whether the connection has taken too long; asked at every look, the last of which it
        remembers."""
        phase = self.phase
        moved = -self.unsent_bytes if phase is Phase.SENDING else self.received
        before = self.mark
        # An answer that grows is being written by us: who takes it is timed from then on.
        has_moved = not before.moved <= moved < before.moved + PACE_BYTES
        is_same = phase is before.phase and self.requests == before.request
        if not is_same or has_moved or phase is Phase.ANSWERING:
            self.mark = Mark(phase, self.requests, now_s, moved)
            return False
        limit_s = settings.idle_s_max if phase is Phase.IDLE else settings.stall_s_max
        return now_s - before.at_s > limit_s


class Connections:
    """Every connection of one server. Used on its event loop only."""

    def __init__(self, settings: Settings, connections_max: int) -> None:
        self._settings = settings
        self._connections_max = connections_max
        self._by_transport: dict[object, Connection] = {}
        self.begin_append: BeginAppend = lambda _data, _on_answer: False
        """The short way of an append, where the server has one."""
        self.idle: dict[Connection, None] = {}
        """Those without a request, the one idle longest first."""

    def __len__(self) -> int:
        return len(self._by_transport)

    def of(self, request: web.Request) -> Connection | None:
        """The connection a request came on; None once it is gone."""
        return self._by_transport.get(request.transport)

    def admit(self, connection: Connection, transport: asyncio.Transport) -> bool:
        """Take a connection. At the bound the one idle longest goes for it; while none is, there
        is no room."""
        if len(self._by_transport) >= self._connections_max and not self._end_idle():
            return False
        self._by_transport[transport] = connection
        self.idle[connection] = None
        return True

    def refusal(self) -> TryAgain:
        """The answer to a connection that there is no room for."""
        return TryAgain(
            f"the server has {len(self._by_transport)} connections in use, which is its bound; "
            "try again, use fewer, or raise connections_max",
            code="busy",
        )

    def change_transport(self, connection: Connection, transport: asyncio.Transport) -> None:
        """Know a connection by another transport from now on."""
        self._by_transport.pop(connection.transport, None)
        self._by_transport[transport] = connection
        connection.transport = transport

    def _end_idle(self) -> bool:
        for connection in self.idle:
            if connection.phase is Phase.IDLE and connection.transport is not None:
                connection.transport.abort()
                self.lost(connection)
                return True
        return False

    def lost(self, connection: Connection) -> None:
        self.idle.pop(connection, None)
        self._by_transport.pop(connection.transport, None)

    async def watch(self) -> None:
        """End those that take too long, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_S)
            now_s = loop.time()
            for connection in list(self._by_transport.values()):
                if connection.is_late(now_s, self._settings):
                    self._end(connection)

    def _end(self, connection: Connection) -> None:
        transport, phase = connection.transport, connection.phase
        if transport is None or transport.is_closing():
            # It is being closed and its peer takes nothing: what is unsent is given up.
            with contextlib.suppress(AttributeError):
                transport.abort()  # type: ignore[union-attr]
        elif phase is Phase.RECEIVING:
            late = TryAgain(
                f"the request did not come within {self._settings.stall_s_max} s, at "
                f"{PACE_BYTES} bytes in that time or more; send it again",
                code="too_slow",
                status=408,
            )
            connection.refuse(late)
        elif phase is Phase.SENDING:
            transport.abort()
        else:
            transport.close()
