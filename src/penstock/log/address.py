"""The address of a JetStream log: the servers to reach it by, and the name of its stream."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from penstock.errors import BadCall

DEFAULT_NAME = "penstock"
DEFAULT_PORT = 4222

_NAME = re.compile(r"[A-Za-z0-9_\-]{1,64}")


@dataclass(frozen=True)
class LogAddress:
    """Servers as `host:port`, with what their address says of user and password, and a stream."""

    servers: tuple[str, ...]
    name: str
    login: str = ""
    scheme: str = "nats"
    credentials: Path | None = None
    """A file: of NATS credentials, with `user:password`, or with a token."""

    @property
    def urls(self) -> list[str]:
        """One address for each server, as the client takes them."""
        return [f"{self.scheme}://{self.login}{server}" for server in self.servers]

    def __str__(self) -> str:
        return f"{self.scheme}://{','.join(self.servers)}/{self.name}"


def log_address(text: str) -> LogAddress:
    """`nats://[user:password@]host[:port][,host[:port]...][/stream]`, checked."""
    scheme, separator, rest = text.partition("://")
    login, at, hosts = rest.rpartition("@")
    servers, _, name = hosts.partition("/")
    if scheme not in ("nats", "tls") or not separator or not servers:
        raise _bad(text, "it does not begin with nats:// or tls:// and a host")
    if name and not _NAME.fullmatch(name):
        raise _bad(text, f"{name!r} is not the name of a stream: letters, digits, '_' and '-'")
    return LogAddress(
        tuple(_server(text, server) for server in servers.split(",")),
        name or DEFAULT_NAME,
        f"{login}{at}",
        scheme,
    )


def _server(text: str, server: str) -> str:
    try:
        parts = urlsplit(f"//{server}")
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise _bad(text, f"{server!r} is not a host with a port") from None
    if not parts.hostname or parts.path:
        raise _bad(text, f"{server!r} is not a host with a port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"


def _bad(text: str, fact: str) -> BadCall:
    shown = re.sub(r"//.*@", "//...@", text)
    return BadCall(
        f"{shown!r} is not the address of a log: {fact}; give "
        "nats://host:port[,host:port...][/stream]",
        code="bad_request",
    )
