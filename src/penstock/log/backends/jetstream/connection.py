"""A NATS client on an event loop and a thread of its own, and requests to JetStream's API."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from penstock.errors import BadCall
from penstock.log.address import LogAddress

try:
    import nats
    from nats.aio.client import Client as NatsClient
except ImportError as missing:
    raise BadCall(
        "a log in JetStream needs the package nats-py, which is not installed; install "
        "penstock[jetstream]",
        code="bad_request",
    ) from missing

LEAST_VERSION = (2, 9)
REQUEST_S = 3.0
CONNECT_S = 2.0
_LOG = logging.getLogger("penstock.log")

T = TypeVar("T")


class ApiError(Exception):
    """An answer of JetStream instead of what was asked for; `code` 503 while it cannot."""

    def __init__(self, code: int, err_code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.err_code = err_code


class Connection:
    """One client. `call` is for other threads, everything else for the loop."""

    def __init__(self, address: LogAddress) -> None:
        self.address = address
        self.loop = asyncio.new_event_loop()
        self.client = NatsClient()
        self.on_reconnect: Callable[[], None] = lambda: None
        """Called on the loop when the client has lost its server and found one again."""
        self._thread = threading.Thread(target=self._run, name="penstock-nats", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.close()

    def call(self, work: Coroutine[Any, Any, T], seconds_max: float | None = None) -> T:
        """Run on the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(seconds_max)

    async def connect(self) -> None:
        """Connect to any of the servers; from then on the client reconnects by itself for ever."""
        client = NatsClient()
        try:
            await asyncio.wait_for(
                client.connect(
                    self.address.urls,
                    name="penstock",
                    connect_timeout=int(CONNECT_S),
                    max_reconnect_attempts=-1,
                    # The client takes fractions, though it says that it does not.
                    reconnect_time_wait=0.2,  # type: ignore[arg-type]
                    ping_interval=3,
                    error_cb=_ignore,
                    reconnected_cb=self._reconnected,
                    skip_subject_validation=True,
                    **login_options(self.address.credentials),
                ),
                CONNECT_S + 1,
            )
        except BaseException:
            await _leave(client)
            raise
        self.client = client

    async def _reconnected(self) -> None:
        self.on_reconnect()

    async def api(self, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One request to JetStream's API, or `ApiError`."""
        data = b"" if body is None else json.dumps(body).encode("utf-8")
        try:
            answer = await self.client.request(f"$JS.API.{subject}", data, timeout=REQUEST_S)
        except nats.errors.NoRespondersError:
            raise ApiError(503, 0, "no server of it answers") from None
        except (nats.errors.Error, TimeoutError, OSError) as error:
            text = str(error) or type(error).__name__
            raise ApiError(503, 0, f"no answer within {REQUEST_S:g} s: {text}") from None
        reply: dict[str, Any] = json.loads(answer.data)
        if "error" in reply:
            refusal = reply["error"]
            text = refusal.get("description", "")
            raise ApiError(refusal.get("code", 500), refusal.get("err_code", 0), text)
        return reply

    @property
    def version(self) -> str:
        return str(self.client._server_info.get("version", "unknown"))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The first two numbers of the server's version."""
        return tuple(int(part) for part in self.version.split("-")[0].split(".")[:2])

    @property
    def payload_max(self) -> int:
        return int(self.client.max_payload)

    def check_version(self) -> None:
        if self.numbers < LEAST_VERSION:
            raise BadCall(
                f"the server at {self.address} is nats-server {self.version}, and a log needs "
                f"{'.'.join(map(str, LEAST_VERSION))} or newer; upgrade it",
                code="bad_request",
            )

    async def reach(self) -> str:
        """The servers given that can be reached, in words."""
        return ", ".join(
            [
                f"{each} ({'up' if await _answers(each) else 'down'})"
                for each in self.address.servers
            ]
        )

    def close(self) -> None:
        """Close the client and end the thread."""
        try:
            self.call(_leave(self.client), CONNECT_S)
        except TimeoutError:
            _LOG.warning("the connection to %s did not close in time", self.address)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


def login_options(file: Path | None) -> dict[str, Any]:
    """Options of the client for a file of credentials, read anew with every connection."""
    if file is None:
        return {}
    try:
        text = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadCall(
            f"the credentials for the log in {file} cannot be read: {error}; give a file that can",
            code="bad_request",
        ) from error
    if "BEGIN NATS USER JWT" in text:
        return {"user_credentials": str(file)}
    user, colon, password = text.partition(":")
    if not text or "\n" in text:
        raise BadCall(
            f"{file} holds no credentials for the log: give a .creds file of NATS, or one line "
            "with USER:PASSWORD or a token",
            code="bad_request",
        )
    return {"user": user, "password": password} if colon else {"token": text}


async def _leave(client: NatsClient) -> None:
    """Close a client, connected or not: one that never was has nothing to close, and says so by
    failing."""
    with contextlib.suppress(Exception):
        await client.close()


async def _ignore(_: Exception) -> None:
    """Losing a connection is said when it matters: when something waits."""


async def _answers(server: str) -> bool:
    host, _, port = server.rpartition(":")
    try:
        opening = asyncio.open_connection(host.strip("[]"), int(port))
        _, writer = await asyncio.wait_for(opening, 0.5)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
