"""Keeps the stream from growing for ever: writes the state down, then purges what that replaces.

The state lies in a stream of its own beside the log's, a message for each chunk, and one more that
names the newest complete one. It is written before anything is purged, and a server that is behind
it loads it instead of the messages that are gone.
"""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import lmdb
import msgspec
import nats

from penstock.errors import Damaged
from penstock.log.backends.jetstream.codec import FIRST_VERSION, VERSION
from penstock.log.backends.jetstream.connection import REQUEST_S, ApiError, Connection
from penstock.log.backends.jetstream.purge import purges
from penstock.log.backends.jetstream.replay import open_operation
from penstock.log.backends.jetstream.state_dump import Baseline, begin_refill, chunks, load
from penstock.log.backends.jetstream.stream import (
    EXPECT_SUBJECT,
    NO_MESSAGE,
    NO_STREAM,
    WRONG_LAST,
    StreamState,
    create_stream,
)
from penstock.log.store.layout import Tables
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn

CHUNK_BYTES = 256 << 10
_LOG = logging.getLogger("penstock.log")


class Keeper:
    """Every method may be called from any thread but the connection's."""

    def __init__(self, connection: Connection, state: StreamState) -> None:
        self._connection = connection
        self._state = state
        self._name = connection.address.name
        self._base = f"{self._name}-base"
        self._newest = f"{self._base}.newest-{VERSION}"
        self._newest_before = [
            *(
                f"{self._base}.newest-{version}"
                for version in range(VERSION - 1, FIRST_VERSION, -1)
            ),
            f"{self._base}.newest",
        ]
        self._stopped = threading.Event()

    def newest(self) -> Baseline | None:
        """The newest state written down for this stream."""
        return self._named()[0]

    def _named(self) -> tuple[Baseline | None, int]:
        """The newest state, and where it is named, which is 0 if nothing ever was.

        A server of an earlier version looks under a name of its own, and does not go on from what
        it would decide otherwise. What it has named itself is good until there is one of this
        version.
        """
        made, named_at = self._named_under(self._newest)
        for subject in self._newest_before if named_at == 0 else ():
            if made is None:
                made, _ = self._named_under(subject)
        return made, named_at

    def _named_under(self, subject: str) -> tuple[Baseline | None, int]:
        asked = {"last_by_subj": subject}
        try:
            answer = self._connection.call(
                self._connection.api(f"STREAM.MSG.GET.{self._base}", asked)
            )
        except ApiError as error:
            if error.err_code in (NO_STREAM, NO_MESSAGE):
                return None, 0
            raise
        message = answer["message"]
        made = msgspec.json.decode(base64.b64decode(message["data"]), type=Baseline)
        return made if made.log == self._state.id else None, int(message["seq"])

    def load(self, env: lmdb.Environment, tables: Tables, made: Baseline) -> None:
        """Bring an empty store to the state; its payloads are still to be filled in."""
        with env.begin(write=True) as txn:
            begin_refill(txn, tables, made.carried)
        for number in range(made.chunks):
            chunk = self._connection.call(self._get(f"{self._base}.{made.lsn}.{number}"))
            with env.begin(write=True) as txn:
                load(txn, tables, chunk)

    def write_down(
        self, reading: Callable[[], AbstractContextManager[StoreView]], wait_s: float
    ) -> int:
        """Write the state down and purge what it replaces, in this order:

        1. make the stream for it, and see which subjects there are;
        2. write every chunk, then name them as the newest: only now it can be found. A server
           that is behind another must not name an older state over a newer one, whose messages
           may be purged already: so only if nothing was named since it looked;
        3. wait, so that servers that are a little behind catch up by the messages themselves;
        4. purge, each subject up to the first entry that is still there, and then every chunk
           written before these, also those of a state that was never named.

        Returns how many messages were purged; none while an operation is half published.
        """
        self._connection.call(create_stream(self._connection, self._base, self._state.replicas))
        subjects = self._subjects()
        before, named_at = self._named()
        with reading() as view:
            is_older = before is not None and view.next_lsn - 1 <= before.lsn
            if open_operation(view) is not None or is_older:
                return 0
            made, first = self._write(view)
            asked = list(purges(view, subjects))
        if not self._name_newest(made, named_at) or self._stopped.wait(wait_s):
            return 0
        purged = sum(self._purge(self._name, f"{self._name}.{name}", lsn) for name, lsn in asked)
        if first > 1:  # a purge below 1 is one of everything
            self._purge(self._base, None, first)
        return purged

    def stop(self) -> None:
        """Purge nothing from here on."""
        self._stopped.set()

    def _write(self, view: StoreView) -> tuple[Baseline, Lsn]:
        """The state, and the message that its first chunk is."""
        lsn, carried = Lsn(view.next_lsn - 1), 0
        places: list[Lsn] = []
        for chunk, left in chunks(view, CHUNK_BYTES):
            subject = f"{self._base}.{lsn}.{len(places)}"
            places.append(self._connection.call(self._publish(subject, chunk)))
            carried += left
        return Baseline(lsn, self._state.id, len(places), carried), places[0]

    def _subjects(self) -> list[str]:
        """Every subject of the log that has messages, below the log's own."""
        subjects: list[str] = []
        while True:
            asked = {"subjects_filter": f"{self._name}.>", "offset": len(subjects)}
            info = self._connection.call(self._connection.api(f"STREAM.INFO.{self._name}", asked))
            page = info["state"].get("subjects") or {}
            subjects += [subject[len(self._name) + 1 :] for subject in page]
            if not page or len(subjects) >= info.get("total", 0):
                return subjects

    def _purge(self, stream: str, subject: str | None, below: Lsn) -> int:
        asked = {"seq": below} if subject is None else {"filter": subject, "seq": below}
        answer = self._connection.call(self._connection.api(f"STREAM.PURGE.{stream}", asked))
        return int(answer.get("purged", 0))

    def _name_newest(self, made: Baseline, named_at: int) -> bool:
        """False if another server has named a state meanwhile."""
        expected = {EXPECT_SUBJECT: str(named_at)}
        try:
            self._connection.call(self._publish(self._newest, msgspec.json.encode(made), expected))
        except ApiError as error:
            if error.err_code in WRONG_LAST:
                return False
            raise
        return True

    async def _publish(
        self, subject: str, data: bytes, headers: dict[str, str] | None = None
    ) -> Lsn:
        answer = await self._connection.client.request(
            subject, data, timeout=REQUEST_S, headers=headers
        )
        reply = msgspec.json.decode(answer.data) if answer.data else {"error": {}}
        if "error" in reply:
            code = reply["error"].get("err_code", 0)
            raise ApiError(503, code, f"the state cannot be written down: {reply['error']}")
        return Lsn(reply["seq"])

    async def _get(self, subject: str) -> bytes:
        asked = msgspec.json.encode({"last_by_subj": subject})
        for _ in range(5):
            try:
                answer = await self._connection.client.request(
                    f"$JS.API.DIRECT.GET.{self._base}", asked, timeout=REQUEST_S
                )
            except (nats.errors.Error, TimeoutError):
                continue
            if answer.headers is not None and "Status" not in answer.headers:
                return answer.data
        raise Damaged(
            f"the message {subject} of the state written down for the log "
            f"{self._connection.address} is not there; start again, and if it stays so restore "
            "JetStream from a backup",
            code="damaged",
        )
