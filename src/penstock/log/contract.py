"""The contract of a log, whatever stores it: entries, and the protocol of its writing side."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Literal, Protocol

import msgspec

from penstock.log.operations import Operation
from penstock.model.ids import FilePath, Instance, Lsn
from penstock.model.marker import Stamp

Kind = Literal["rows", "pending", "marker", "take over", "file", "record"]


class Head(msgspec.Struct, frozen=True, array_like=True):
    """An entry without its payload. `checksum` and `payload_bytes` are the payload's.

    `rows` entries are visible by themselves, `pending` ones once a marker names them; the other
    kinds carry no rows. A `file` has its query as `producer`, its batch as `seq`, and a `path`.
    A `record` is bytes under the tags its writer chose. `version` is that of the stream's columns.
    """

    lsn: Lsn
    kind: Kind
    tags: tuple[str, ...]
    arrived_at_ms: int
    checksum: int
    payload_bytes: int
    rows: int = 0
    producer: str | None = None
    instance: Instance | None = None
    seq: int | None = None
    stamp: Stamp | None = None
    path: FilePath | None = None
    version: int = 0


class Entry(msgspec.Struct, frozen=True):
    """One place of the log. The payload is an encapsulated Arrow record batch, JSON,
    or the bytes of a file."""

    head: Head
    payload: bytes


class Log(Protocol):
    """The writing side of a log. Reading is by `penstock.log.view.View`."""

    def submit(self, operation: Operation) -> Future[Any]:
        """Queue the operation; the future holds its answer once durable, or its refusal.

        Raises `busy` when the queue is full and `stopping` when the log is closing, with nothing
        queued.
        """
        ...

    def close(self) -> None:
        """Finish what is queued, refuse what comes after, release the folder."""
        ...
