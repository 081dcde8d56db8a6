"""The server process: open the log, listen, and stop without losing what is under way."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import resource
import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import BadCall
from penstock.gateway.app import make_app
from penstock.gateway.connections import Connection
from penstock.gateway.context import LIGHT_BYTES, Gateway
from penstock.gateway.handshakes import Handshakes
from penstock.gateway.quick_append import QuickAppends
from penstock.gateway.tokens import Token, Tokens
from penstock.log.address import LogAddress
from penstock.log.backends.local import LocalLog
from penstock.log.opening import open_log
from penstock.settings.server import Settings

READ_BUFFER_BYTES = 128 << 10
"""Of a connection, twice as much at most: what is read from it before anybody wants it."""
FOREVER_S = 10 * 365 * 86_400.0
FILES_OWN = 256
"""Open files that are no connections: the store, threads, copies, JetStream."""
CLEANUP_S_MAX = 1.0
# Paths and sizes of the files of a batch stand in the request line; `request_files_max` of them fit
# there.
LINE_BYTES_MAX = 512 << 10


@dataclass(frozen=True)
class Address:
    """An address to listen at. Port 0 takes a free one. Any but loopback needs a certificate."""

    host: str = "127.0.0.1"
    port: int = 0
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def check(self) -> None:
        """Refuse to send a token over a network in clear."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise _bad("--tls-cert and --tls-key go together; give both or none")
        if self.tls_cert is None and not _is_loopback(self.host):
            raise _bad(
                f"{self.host} is not this machine's loopback address, and the token would travel "
                "in clear; give --tls-cert and --tls-key, or leave --host out"
            )

    def ssl_context(self) -> ssl.SSLContext | None:
        if self.tls_cert is None or self.tls_key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise _bad(
                f"the certificate {self.tls_cert} with the key {self.tls_key} cannot be used: "
                f"{error}; give a PEM certificate and its key"
            ) from error
        return context


class Credentials(NamedTuple):
    """A token given to the server, and a file of tokens; each may be left out."""

    token: str | None = None
    file: Path | None = None


def _bad(message: str) -> BadCall:
    return BadCall(message, code="bad_request")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Server:
    """A listening server. `start` and `stop` on one event loop."""

    def __init__(
        self, log: LocalLog, address: Address, credentials: Credentials, clock: Clock
    ) -> None:
        self.log = log
        self.address = address
        self.url = ""
        self._credentials = credentials
        self._clock = clock
        self._gateway: Gateway | None = None
        self._runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None
        self._handshakes: Handshakes | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen, then say where in `server.json`."""
        tokens = self._tokens()
        context = self.address.ssl_context()
        self._gateway = gateway = Gateway(
            self.log, tokens, self._clock, _connections_max(self.log.settings.connections_max)
        )
        self._runner = runner = web.AppRunner(
            make_app(gateway),
            access_log=None,
            handle_signals=False,
            shutdown_timeout=CLEANUP_S_MAX,
            # It is not asked about what takes the short way: connections are timed by ours.
            keepalive_timeout=FOREVER_S,
            read_bufsize=READ_BUFFER_BYTES,
            max_line_size=LINE_BYTES_MAX,
        )
        await runner.setup()
        loop = asyncio.get_running_loop()

        if context is not None:
            self._handshakes = Handshakes(context, self.log.settings.stall_s_max)

        def connection() -> asyncio.Protocol:
            assert runner.server is not None  # from setup to cleanup
            plain = Connection(runner.server(), gateway.connections)
            return plain if self._handshakes is None else self._handshakes.before(plain)

        try:
            self._listening = await loop.create_server(
                connection, self.address.host, self.address.port, backlog=512
            )
        except OSError as error:
            await runner.cleanup()
            raise _bad(
                f"cannot listen on {self.address.host} port {self.address.port}: "
                f"{error.strerror or error}; stop what listens there, or give another --port"
            ) from error
        port = self._listening.sockets[0].getsockname()[1]
        host = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        self.url = f"{'https' if context else 'http'}://{host}:{port}"
        self.log.folder.write_server(self.url, tokens.local.text)
        gateway.warm_up()
        gateway.connections.begin_append = QuickAppends(gateway, LIGHT_BYTES).begin
        self._watching = loop.create_task(gateway.connections.watch())
        gateway.collector.start()

    def _tokens(self) -> Tokens:
        """Those given; without any, the one in the data folder, which is made the first time."""
        given, file = self._credentials
        if given is None and file is None:
            file = self.log.folder.token_file()
        return Tokens(given, file, self._clock, self._say_token)

    def _say_token(self, token: Token) -> None:
        self.log.folder.write_server(self.url, token.text)

    async def stop(self) -> None:
        """Stop without losing what is under way, in this order:

        1. take no new connection, and refuse new requests on those there are;
        2. answer what is held;
        3. wait for requests under way, with their connections open: bodies may still be coming;
        4. close the connections, then the log, which those requests have written to.
        """
        if self._listening is not None:
            self._listening.close()
        if self._handshakes is not None:
            self._handshakes.stop()
        if self._gateway is not None:
            self._gateway.stopping = True
            self._gateway.held.release()
            await self._gateway.in_flight.wait_until_none(self.log.settings.stop_s_max)
        if self._watching is not None:
            self._watching.cancel()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._gateway is not None:
            await asyncio.to_thread(self._gateway.collector.close)
            self._gateway.close()
        self.log.folder.remove_server()
        await asyncio.get_running_loop().run_in_executor(None, self.log.close)


def _connections_max(wished: int) -> int:
    """As many connections as are wished for, if so many files may be open: the bound that the
    system sets by itself is raised as far as it lets itself be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wished + FILES_OWN:
        soft = min(hard, wished + FILES_OWN)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(wished, soft - FILES_OWN))


def run(
    data: Path,
    address: Address,
    settings: Settings,
    credentials: Credentials,
    on_start: Callable[[Server], None],
    *,
    cut_damaged_tail: bool = False,
    log_address: LogAddress | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Serve until SIGTERM or SIGINT; returns once everything is closed."""
    address.check()
    os.umask(0o077)  # whatever the server makes is its owner's alone
    log = open_log(data, log_address, settings, clock, cut_damaged_tail=cut_damaged_tail)
    asyncio.run(_serve(Server(log, address, credentials, clock), on_start))


async def _serve(server: Server, on_start: Callable[[Server], None]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        await server.start()
        on_start(server)
        await stopped.wait()
    finally:
        await server.stop()
