"""Handshakes of TLS: a connection has a place among the others before it has a key.

Where `asyncio` is asked to listen with a certificate, it tells nobody of a connection until its
handshake is over, so that whoever sends nothing holds any number of them. So connections are taken
as they come, count from then on, give way as idle ones do, and only then begin with TLS.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import cast

from penstock.gateway.connections import Connection


class Handshakes:
    """The handshakes under way of one server. Used on its event loop only."""

    def __init__(self, context: ssl.SSLContext, seconds_max: float) -> None:
        self._context = context
        self._seconds_max = seconds_max
        self._under_way: dict[asyncio.Task[None], asyncio.Transport] = {}
        self._is_stopped = False

    def before(self, connection: Connection) -> asyncio.Protocol:
        """The protocol for a transport that has just come: it shakes hands, then hands the
        transport over to the connection. Without room for one more it closes the transport: who
        has no key can be told nothing."""
        return _Handshake(connection, self)

    def begin(self, handshake: _Handshake, transport: asyncio.Transport) -> None:
        """Shake hands; a handshake that fails, or takes longer than it may, ends the transport."""
        task = asyncio.get_running_loop().create_task(self._shake_hands(handshake, transport))
        self._under_way[task] = transport
        task.add_done_callback(self._under_way.pop)
        if self._is_stopped:
            transport.abort()

    async def _shake_hands(self, handshake: _Handshake, transport: asyncio.Transport) -> None:
        secured = None
        try:
            if not transport.is_closing():
                with contextlib.suppress(OSError):  # as all are that TLS and sockets raise
                    secured = await asyncio.get_running_loop().start_tls(
                        transport,
                        handshake,
                        self._context,
                        server_side=True,
                        ssl_handshake_timeout=self._seconds_max,
                    )
        finally:
            handshake.end(None if transport.is_closing() else secured)

    def stop(self) -> None:
        """End those under way, and whatever connection was taken just before and begins now."""
        self._is_stopped = True
        for transport in self._under_way.values():
            transport.abort()


class _Handshake(asyncio.Protocol):
    """Stands for a connection until its handshake is over."""

    def __init__(self, connection: Connection, handshakes: Handshakes) -> None:
        self._connection = connection
        self._handshakes = handshakes
        self._early = b""
        """Bytes that came over TLS in the turn of the loop in which the handshake ended."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        plain = cast("asyncio.Transport", transport)
        if self._connection.take_place(plain):
            self._handshakes.begin(self, plain)
        else:
            plain.abort()

    def data_received(self, data: bytes) -> None:
        self._early += data

    def end(self, secured: asyncio.Transport | None) -> None:
        """Give the place up, or begin with HTTP on what is left of the connection."""
        if secured is None:
            self._connection.give_place_up()
        else:
            secured.set_protocol(self._connection)
            self._connection.begin_over(secured)
            if self._early:
                self._connection.data_received(self._early)
