"""One request at a time, tried again until it is answered or its deadline has passed.

What is tried again: connections that fail or break, and answers whose error says `retry`. Whoever
calls must make that safe: an append by a producer and a sequence, a reset by its run, a deletion or
an alteration by naming what it was meant for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import urllib3

from penstock.client.address import Address
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import BadCall, Bug, PenstockError, TryAgain
from penstock.model.protocol import PROTOCOL, PROTOCOL_HEADER
from penstock.model.refusals import Refusal

ARROW = "application/vnd.apache.arrow.stream"
JSON_LINES = "application/x-ndjson"
CSV = "text/csv"
JSON = "application/json"

T = TypeVar("T")

PAUSE_FIRST_S = 0.05
PAUSE_MAX_S = 2.0
CONNECT_TIMEOUT_S = 5.0
CONNECTIONS_MAX = 16
PIECE_BYTES = 1 << 20


class Answer(msgspec.Struct, frozen=True):
    """A good answer: 200 or 201, its headers and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def as_kind(self, kind: type[T]) -> T:
        """The body as one of the structs that the model has for answers."""
        return msgspec.json.decode(self.body, type=kind)


class Wire:
    """A pool of connections to one server. Safe to share between threads."""

    def __init__(
        self, url: str, token: str, ca: str | None, deadline_s: float, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise BadCall(
                f"{url!r} is not a server's URL, such as http://127.0.0.1:8720", code="bad_url"
            )
        self.url = url.rstrip("/")
        self._given = (url, token, ca, deadline_s, clock)
        self._headers = {"Authorization": f"Bearer {token}", PROTOCOL_HEADER: str(PROTOCOL)}
        self._deadline_s = deadline_s
        self._clock = clock
        self._pool = urllib3.PoolManager(
            maxsize=CONNECTIONS_MAX, block=True, retries=False, ca_certs=ca
        )

    def request(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, object] | None = None,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        hold_s: float = 0.0,
    ) -> Answer:
        """Ask until answered. `hold_s` is how long the server may hold an answer on purpose.

        Raises the server's own error, or TryAgain with code `unreachable` once the deadline has
        passed without one: then the outcome is unknown. At least one try is made.
        """
        asked = "/".join(("", "v1", *(quote(part, safe="") for part in path)))
        given = {key: value for key, value in (query or {}).items() if value is not None}
        target = f"{self.url}{asked}" + (f"?{urlencode(given, safe=',')}" if given else "")
        sent = {**self._headers, **(headers or {})}
        until = self._clock.monotonic_s() + self._deadline_s
        pause = PAUSE_FIRST_S
        while True:
            left = until - self._clock.monotonic_s()
            try:
                return self._once(method, target, body, sent, max(left, 1.0) + hold_s)
            except (TryAgain, urllib3.exceptions.HTTPError) as error:
                if until - self._clock.monotonic_s() <= pause:
                    raise self._gave_up(error) from error
            self._clock.sleep(pause)
            pause = min(pause * 2, PAUSE_MAX_S)

    def stream(self, method: str, path: tuple[str, ...]) -> Iterator[bytes]:
        """A long answer in pieces, asked for once: what breaks off is raised, and not repeated."""
        target = "/".join((self.url, "v1", *(quote(part, safe="") for part in path)))
        timeout = urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=self._deadline_s)
        try:
            got = self._pool.request(
                method,
                target,
                headers=self._headers,
                timeout=timeout,
                redirect=False,
                preload_content=False,
            )
            with contextlib.closing(got):
                if got.status >= 300:
                    raise _error_of(got.status, got.data)
                _check_protocol(self.url, got.headers)
                yield from got.stream(PIECE_BYTES)
        except urllib3.exceptions.HTTPError as error:
            raise self._gave_up(error) from error

    def renewed(self) -> Wire:
        """The same server over new connections."""
        return Wire(*self._given)

    @property
    def address(self) -> Address:
        url, token, ca, *_ = self._given
        return Address(url, token, ca)

    def close(self) -> None:
        self._pool.clear()

    def _once(
        self, method: str, target: str, body: bytes | None, headers: dict[str, str], read_s: float
    ) -> Answer:
        timeout = urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=read_s)
        got = self._pool.request(
            method, target, body=body, headers=headers, timeout=timeout, redirect=False
        )
        if got.status >= 300:
            raise _error_of(got.status, got.data)
        _check_protocol(self.url, got.headers)
        return Answer(got.status, got.headers, got.data)

    def _gave_up(self, error: Exception) -> PenstockError:
        if isinstance(error, PenstockError):
            return error
        return TryAgain(
            f"{self.url} did not answer within {self._deadline_s:g} s ({_cause(error)}); "
            "is the server running there?",
            code="unreachable",
        )


def _check_protocol(url: str, headers: Mapping[str, str]) -> None:
    """A server of another protocol may answer and mean something else: nothing of it is used."""
    served = headers.get(PROTOCOL_HEADER, "1, or names none")
    if served != str(PROTOCOL):
        raise BadCall(
            f"the server at {url} is of protocol {served}, and this client follows protocol "
            f"{PROTOCOL}; use the server and the client of one version",
            code="wrong_protocol",
        )


def _error_of(status: int, body: bytes) -> PenstockError:
    try:
        return msgspec.json.decode(body, type=Refusal).as_error(status)
    except msgspec.DecodeError:
        said = body[:200].decode("utf-8", "replace")
    message = f"answer {status} is not one of Penstock's ({said!r}); is another server at this URL?"
    # A proxy in between answers like this while the server behind it restarts.
    if status in (502, 503, 504):
        return TryAgain(message, code="unreachable", status=status)
    return Bug(message, code="bug", status=status)


def _cause(error: BaseException) -> str:
    inner = getattr(error, "reason", None) or error.__cause__ or error
    return f"{type(inner).__name__}: {str(inner).rpartition(': ')[2]}"
