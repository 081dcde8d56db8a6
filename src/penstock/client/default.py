"""The client behind `penstock.append` and its like: one per process, found when first needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pyarrow as pa

from penstock.client import address
from penstock.client.client import Client
from penstock.client.consume import Consumer
from penstock.client.rows import Followed, Rows
from penstock.client.streams import Stream
from penstock.model.answers import Appended

_lock = threading.Lock()
_current: Client | None = None


def connect(url: str, token: str, ca: str | None = None) -> Client:
    """A client of the server at `url`; nothing is sent before the first call."""
    return Client(url, token, ca)


def use(client: Client | None) -> None:
    """Make `client` the one of the module-level functions; None: look for one again."""
    global _current  # noqa: PLW0603 - the one piece of process-wide state there is
    with _lock:
        _current = client


def current() -> Client:
    """The server of the current session, else PENSTOCK_URL, else ./penstock-data/server.json."""
    global _current  # noqa: PLW0603
    with _lock:
        if _current is None:
            server = address.find()
            if server is None:
                raise address.no_server()
            _current = Client(server.url, server.token, server.ca)
        return _current


def create(
    stream: str,
    schema: str | pa.Schema,
    *,
    substreams: int | None = None,
    key: Sequence[str] | str | None = None,
) -> Stream:
    """`Client.create` on the current server."""
    return current().create(stream, schema, substreams=substreams, key=key)


def append(
    stream: str,
    rows: Rows,
    *,
    key: Sequence[str] | str | None = None,
    substream: int | None = None,
) -> Appended:
    """`Client.append` on the current server."""
    return current().append(stream, rows, key=key, substream=substream)


def read(
    stream: str,
    after: int | None = None,
    until: int | None = None,
    *,
    substream: int | None = None,
) -> pa.Table:
    """`Client.read` on the current server."""
    return current().read(stream, after, until, substream=substream)


def follow(
    stream: str,
    after: int | None = None,
    *,
    substream: int | None = None,
    stop: threading.Event | None = None,
) -> Iterator[Followed]:
    """`Client.follow` on the current server."""
    return current().follow(stream, after, substream=substream, stop=stop)


def consume(
    *streams: str,
    group: str,
    start: str | int = "earliest",
    auto_commit: bool = True,
    stop: threading.Event | None = None,
) -> Consumer:
    """`Client.consume` on the current server."""
    return current().consume(*streams, group=group, start=start, auto_commit=auto_commit, stop=stop)
