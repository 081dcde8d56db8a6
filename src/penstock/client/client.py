"""The client: one object per server, safe to share between threads."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from uuid import uuid4

import pyarrow as pa

from penstock.client.address import Address
from penstock.client.append_sequences import Sequences
from penstock.client.consume import Consumer
from penstock.client.maintenance import MaintenanceCalls
from penstock.client.queries import QueryCalls
from penstock.client.records import RecordCalls
from penstock.client.rows import Followed, Rows, as_batch, ipc_batches, ipc_bytes
from penstock.client.streams import StreamCalls
from penstock.client.wire import ARROW, Wire
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import BadCall, TryAgain
from penstock.model.answers import Appended, Health, ServerDescription

DEADLINE_S = 30.0
ANSWER_BYTES = 8 << 20
WAIT_MS = 1_000


class Client(StreamCalls, QueryCalls, RecordCalls, MaintenanceCalls):
    """Talks to one server; every call is tried again for up to `deadline_s`.

    Appends of one client to one stream go one after the other, each with its own sequence under
    the client's random producer id, so that a try repeated by the client never appends twice. Use
    several clients to append to one stream in parallel. A forked child gets an id of its own.
    """

    def __init__(
        self,
        url: str,
        token: str,
        ca: str | None = None,
        *,
        deadline_s: float = DEADLINE_S,
        clock: Clock = SYSTEM_CLOCK,
        new_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        self._wire = Wire(url, token, ca, deadline_s, clock)
        self._new_id = new_id
        self._sequences = Sequences(new_id())
        self._schemas: dict[str, pa.Schema] = {}
        self._first_columns: dict[str, int] = {}
        self._clock = clock
        _clients.add(self)

    def _after_fork(self) -> None:
        # The child must share neither sockets nor the producer id with its parent: two processes
        # counting under one id would drop each other's rows as duplicates.
        self._wire = self._wire.renewed()
        self._sequences = Sequences(self._new_id())

    @property
    def url(self) -> str:
        return self._wire.url

    @property
    def address(self) -> Address:
        """The server, its token included, for another process."""
        return self._wire.address

    def close(self) -> None:
        """Closes idle connections; the client may be used again."""
        self._wire.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Rows

    def append(
        self,
        stream: str,
        rows: Rows,
        *,
        key: Sequence[str] | str | None = None,
        substream: int | None = None,
        producer: str | None = None,
        sequence: int | None = None,
    ) -> Appended:
        """Append rows as one commit: durable and visible when this returns, all or nothing.

        Give `producer` and `sequence` together to make the call repeatable across processes: a
        sequence not above that producer's last one on the stream is not appended again.

        Raises TryAgain when the deadline passes: whether the rows are there is then unknown, and
        the message holds what to pass to send them again safely.
        """
        batch = self._batch(stream, rows)
        return self.append_bytes(
            stream,
            ipc_bytes(batch),
            ARROW,
            key=key,
            substream=substream,
            producer=producer,
            sequence=sequence,
        )

    def _batch(self, stream: str, rows: Rows) -> pa.RecordBatch:
        """The rows in the stream's columns; asked for anew if the ones known do not fit."""
        schema = self.schema(stream)
        try:
            return as_batch(rows, schema, self._first_columns[stream])
        except BadCall:
            if self.describe(stream).schema == schema:
                raise
        return as_batch(rows, self.schema(stream), self._first_columns[stream])

    def append_bytes(
        self,
        stream: str,
        body: bytes,
        content_type: str,
        *,
        key: Sequence[str] | str | None = None,
        substream: int | None = None,
        producer: str | None = None,
        sequence: int | None = None,
    ) -> Appended:
        """Append, as `append` does, rows that are encoded already: Arrow IPC, JSON lines or CSV."""
        if (producer is None) != (sequence is None):
            raise BadCall("give producer and sequence together, or neither", code="bad_request")
        query = {
            "key": key if key is None or isinstance(key, str) else ",".join(key),
            "substream": substream,
        }
        with self._sequences.claim(stream, producer, sequence) as claim:
            headers = {
                "Content-Type": content_type,
                "Penstock-Producer": claim.producer,
                "Penstock-Sequence": str(claim.sequence),
            }
            try:
                got = self._wire.request(
                    "POST", ("streams", stream, "rows"), query, body=body, headers=headers
                )
            except TryAgain as error:
                raise TryAgain(
                    f"{error.message}; the rows may be there or not: to be sure, append the same "
                    f"rows with producer={claim.producer!r}, sequence={claim.sequence} before any "
                    "others",
                    code=error.code,
                    status=error.http_status,
                ) from error
        return got.as_kind(Appended)

    def scan(
        self,
        stream: str,
        after: int | None = None,
        until: int | None = None,
        *,
        substream: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows committed in `(after, until]`, a bounded answer at a time.

        `after` defaults to the earliest position there is, `until` to the latest one at the first
        request: what is committed later is not part of the scan.
        """
        start = self.position(stream, at="earliest") if after is None else after
        cursor: str | None = None
        while True:
            rows, until, cursor = self._fetch(stream, start, until, substream, cursor, None)
            yield from rows
            if cursor is None:
                return

    def read(
        self,
        stream: str,
        after: int | None = None,
        until: int | None = None,
        *,
        substream: int | None = None,
    ) -> pa.Table:
        """Read what `scan` reads, as one table in memory."""
        return pa.Table.from_batches(
            list(self.scan(stream, after, until, substream=substream)), self.schema(stream)
        )

    def follow(
        self,
        stream: str,
        after: int | None = None,
        *,
        substream: int | None = None,
        stop: threading.Event | None = None,
    ) -> Iterator[Followed]:
        """Committed rows as they come, for ever or until `stop` is set (seen within a second).

        `after` defaults to the latest position: only what comes. A large backlog comes in pieces:
        `position` advances only with the last piece of what lies before it. Who must see each row
        once stores what it made of the rows together with a position that has advanced.
        """
        position = self.position(stream) if after is None else after
        schema = self.schema(stream)
        until: int | None = None
        cursor: str | None = None
        while stop is None or not stop.is_set():
            rows, reached, cursor = self._fetch(stream, position, until, substream, cursor, WAIT_MS)
            until = reached if cursor is not None else None
            position = reached if cursor is None else position
            if rows:
                yield Followed(pa.Table.from_batches(rows, schema), position)

    def consume(
        self,
        *streams: str,
        group: str,
        start: str | int = "earliest",
        auto_commit: bool = True,
        stop: threading.Event | None = None,
    ) -> Consumer:
        """Committed rows, as they come, from where the group of this name got to (else `start`).

        As `follow`, but the position is kept in the log and the log keeps the rows for the group;
        see `penstock.client.consume`. Each batch is committed when the next one is asked for, or by
        `commit` with `auto_commit=False`: at least once, after a crash the last batch comes again.
        """
        return Consumer(
            self, streams, group, self._clock, start=start, auto_commit=auto_commit, stop=stop
        )

    # What else the server knows

    def health(self) -> Health:
        """Version and protocol; needs no valid token."""
        return self._wire.request("GET", ("health",)).as_kind(Health)

    def server(self) -> ServerDescription:
        return self._wire.request("GET", ("server",)).as_kind(ServerDescription)

    def _fetch(
        self,
        stream: str,
        after: int,
        until: int | None,
        substream: int | None,
        cursor: str | None,
        wait_ms: int | None,
    ) -> tuple[list[pa.RecordBatch], int, str | None]:
        query = {
            "after": after,
            "until": until,
            "substream": substream,
            "cursor": cursor,
            "columns": len(self.schema(stream)),
            "bytes": ANSWER_BYTES,
            "wait_ms": wait_ms if until is None else None,
        }
        got = self._wire.request(
            "GET",
            ("streams", stream, "rows"),
            query,
            headers={"Accept": ARROW},
            hold_s=(wait_ms or 0) / 1000,
        )
        position = int(got.headers["Penstock-Position"])
        return list(ipc_batches(got.body)), position, got.headers.get("Penstock-Cursor")


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _renew_all() -> None:
    for client in list(_clients):
        client._after_fork()


os.register_at_fork(after_in_child=_renew_all)
