"""The server process: open the log, listen, and stop without losing what is under way."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import BadCall
from penstock.gateway.app import make_app
from penstock.gateway.context import Gateway
from penstock.log.address import LogAddress
from penstock.log.backends.local import LocalLog
from penstock.log.opening import open_log
from penstock.settings.server import Settings

READ_BUFFER_BYTES = 1 << 20
CLEANUP_S_MAX = 1.0
# Paths and sizes of the files of a batch stand in the request line; `request_files_max` of them fit
# there.
LINE_BYTES_MAX = 512 << 10


@dataclass(frozen=True)
class Address:
    """Where to listen. Port 0 takes a free one. Elsewhere than loopback needs a certificate."""

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

    def __init__(self, log: LocalLog, address: Address, token: str | None, clock: Clock) -> None:
        self.log = log
        self.address = address
        self.url = ""
        self._given_token = token
        self._clock = clock
        self._gateway: Gateway | None = None
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen, then say where in `server.json`."""
        token = self.log.folder.token(self._given_token)
        context = self.address.ssl_context()
        self._gateway = Gateway(self.log, token, self._clock)
        self._runner = web.AppRunner(
            make_app(self._gateway),
            access_log=None,
            handle_signals=False,
            shutdown_timeout=CLEANUP_S_MAX,
            read_bufsize=READ_BUFFER_BYTES,
            max_line_size=LINE_BYTES_MAX,
        )
        await self._runner.setup()
        site = web.TCPSite(
            self._runner, self.address.host, self.address.port, ssl_context=context, backlog=512
        )
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise _bad(
                f"cannot listen on {self.address.host} port {self.address.port}: "
                f"{error.strerror or error}; stop what listens there, or give another --port"
            ) from error
        port = self._runner.addresses[0][1]
        host = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        self.url = f"{'https' if context else 'http'}://{host}:{port}"
        self.log.folder.write_server(self.url, token)
        self._gateway.collector.start()

    async def stop(self) -> None:
        """Stop without losing what is under way, in this order:

        1. take no new connection, and refuse new requests on those there are;
        2. answer what is held;
        3. wait for requests under way, with their connections open: bodies may still be coming;
        4. close the connections, then the log, which those requests have written to.
        """
        for site in list(self._runner.sites) if self._runner is not None else []:
            await site.stop()
        if self._gateway is not None:
            self._gateway.stopping = True
            self._gateway.held.release()
            await self._gateway.in_flight.wait_until_none(self.log.settings.stop_s_max)
        if self._runner is not None:
            await self._runner.cleanup()
        if self._gateway is not None:
            await asyncio.to_thread(self._gateway.collector.close)
            self._gateway.close()
        self.log.folder.remove_server()
        await asyncio.get_running_loop().run_in_executor(None, self.log.close)


def run(
    data: Path,
    address: Address,
    settings: Settings,
    token: str | None,
    on_start: Callable[[Server], None],
    *,
    cut_damaged_tail: bool = False,
    log_address: LogAddress | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Serve until SIGTERM or SIGINT; returns once everything is closed."""
    address.check()
    log = open_log(data, log_address, settings, clock, cut_damaged_tail=cut_damaged_tail)
    asyncio.run(_serve(Server(log, address, token, clock), on_start))


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
