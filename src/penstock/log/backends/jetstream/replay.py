"""The meaning of the stream's messages, in the order of the stream: the same on every server.

Everything is decided here, from the store and the message alone. So servers that have come to the
same message hold the same log, whoever published what and how often.
"""

from __future__ import annotations

import dataclasses
import logging
import struct
from typing import Any, NamedTuple

import lmdb
import msgspec

from penstock.errors import Damaged
from penstock.log.backends.jetstream.codec import (
    FIRST_VERSION,
    VOID,
    Meta,
    OperationId,
    decode,
    operation_of,
    tag_of,
    version_of,
)
from penstock.log.backends.outcomes import News, carry_out, failed
from penstock.log.operations import Operation
from penstock.log.rules import PARTS_CLEARED, PRODUCERS_KEPT, Rules
from penstock.log.store.layout import Part, Tables, lsn_key, lsn_of, subject_key
from penstock.log.store.view import StoreView
from penstock.log.view import Place
from penstock.model.ids import Lsn

PUBLISHED_WINDOW = 16_384
"""How many operations back a repeat of one publisher is recognised; fewer than that are under way
at a time. What is older is a repeat."""
PUBLISHERS_MAX = 64
_PRUNE_EVERY = 1_024
LOG_VERSION = "log_version"
_LOG = logging.getLogger("penstock.log")

_NUMBER = struct.Struct(">Q")
_INDEX = struct.Struct(">I")
_encode = msgspec.msgpack.Encoder().encode
_decode_number = msgspec.msgpack.Decoder(int).decode


class Delivered(NamedTuple):
    """A message as the stream gives it."""

    lsn: Lsn
    at_ms: int
    subject: str
    body: bytes


class Outcome(NamedTuple):
    """The end of an operation: its answer, or the error it is refused with."""

    id: OperationId
    answer: Any


class Void:
    """The answer of an operation that did not take place, because a message of it was missing."""


_decode_part = msgspec.msgpack.Decoder(Part).decode


class Replay:
    """Applies messages within one write transaction."""

    def __init__(
        self, txn: lmdb.Transaction, tables: Tables, rules: Rules, news: News | None = None
    ) -> None:
        self._txn = txn
        self._tables = tables
        self._view = StoreView(txn, tables)
        self._rules = rules
        self._at_ms = self._view.counter("arrived_at_ms", 0)
        self._next = self._view.next_lsn
        self._version = log_version(self._view)
        self.news = News() if news is None else news

    def apply(self, message: Delivered) -> Outcome | None:
        """The operation that the message completes, if anything. One seen before changes nothing.

        Time is that of the message, and never goes back: after a change of leader another
        machine's clock stamps.
        """
        if message.lsn < self._next:
            return None
        self._take_time(message)
        outcome = self._apply(message)
        self._pass(message)
        return outcome

    def refuse(self, message: Delivered, error: Exception) -> Outcome | None:
        """Pass over a message that cannot be applied on any server; `error` says why. Of an
        operation, whose last message it is, that is the outcome."""
        self._take_time(message)
        self._note_subject(message)
        decoded = decode(message.body)
        outcome = None
        meta = None if decoded is None else decoded[0]
        if meta is not None and self._is_current(message, meta) and meta.is_last:
            outcome = Outcome(meta.id, failed("applying", message, error))
            self._void(meta.id, message.lsn)
        self._pass(message)
        return outcome

    def _take_time(self, message: Delivered) -> None:
        self._at_ms = max(self._at_ms, message.at_ms)
        if self._version >= PRODUCERS_KEPT:
            moved = self._view.steady.moved_to(message.at_ms, self._rules.step_ms_max)
            self._view.put_steady(moved)

    def _note_subject(self, message: Delivered) -> None:
        if message.subject.startswith("t."):
            self._put("subjects", subject_key(message.subject), _encode(message.lsn))

    def _pass(self, message: Delivered) -> None:
        self._next = Lsn(message.lsn + 1)
        self.news.last = message.lsn
        self._put_counter("next_lsn", self._next)
        self._put_counter("arrived_at_ms", self._at_ms)

    def _apply(self, message: Delivered) -> Outcome | None:
        self._note_subject(message)
        decoded = decode(message.body)
        if decoded is None:
            return None
        meta, payload = decoded
        if not self._is_current(message, meta):
            return None
        if self._is_seen(meta.id):
            if meta.kind == VOID and self._version >= PARTS_CLEARED:
                self._forget_parts(meta.id)
            return None
        if meta.kind == VOID:
            return self._void(meta.id, message.lsn)
        if not meta.is_last:
            self._keep(meta, payload, message)
            return None
        return self._complete(meta, payload, message.lsn)

    def _is_current(self, message: Delivered, meta: Meta) -> bool:
        """False of a message older than one before it: its server has not seen that one, at which
        it stops, and so has answered nobody. The first of a new version raises the log's."""
        version = version_of(message.body)
        if version < self._version:
            _LOG.warning(
                "the message %d is passed over: the server that published it, %s, is of version "
                "%d, and the log has been of version %d since; stop that server, or upgrade it",
                message.lsn, meta.publisher.hex(), version, self._version,
            )  # fmt: skip
            return False
        if version > self._version:
            self._version = version
            self._put_counter(LOG_VERSION, version)
        return True

    def _complete(self, meta: Meta, payload: bytes, lsn: Lsn) -> Outcome:
        parts = self._parts(meta.id)
        if len(parts) != meta.count - 1 or any(index not in parts for index in range(len(parts))):
            return self._void(meta.id, lsn)
        waited = [parts[index] for index in range(meta.count - 1)]
        payloads = [part.payload for _, part in waited]
        operation = operation_of(meta, (*payloads, payload))
        self._forget_parts(meta.id)
        self._remember(meta.id, lsn)
        if operation is None:
            return Outcome(meta.id, Void())
        places = tuple(Place(place, part.at_ms) for place, part in waited)
        return Outcome(meta.id, self._decide(operation, (*places, Place(lsn, self._at_ms))))

    def _decide(self, operation: Operation, places: tuple[Place, ...]) -> Any:
        rules = dataclasses.replace(self._rules, version=self._version)
        view = StoreView(self._txn, self._tables, self._at_ms, places, rules)
        outcome = carry_out(operation, view, self.news)
        if isinstance(outcome, Damaged):
            raise outcome  # what this server's disk has lost must not be its own decision
        return outcome

    def _void(self, id: OperationId, lsn: Lsn) -> Outcome:
        self._forget_parts(id)
        self._remember(id, lsn)
        return Outcome(id, Void())

    def _keep(self, meta: Meta, payload: bytes, message: Delivered) -> None:
        key = _key(meta.id) + _INDEX.pack(meta.index)
        if self._view.get("parts_of", key) is not None:
            return
        part = Part(*meta.id, meta.index, self._at_ms, payload, tag_of(message.subject))
        self._put("parts", lsn_key(message.lsn), _encode(part))
        self._put("parts_of", key, lsn_key(message.lsn))

    def _parts(self, id: OperationId) -> dict[int, tuple[Lsn, Part]]:
        parts = {}
        prefix = _key(id)
        with self._txn.cursor(db=self._tables["parts_of"]) as cursor:
            has_row = cursor.set_range(prefix)
            while has_row and bytes(cursor.key()[:-4]) == prefix:
                lsn = lsn_of(cursor.value())
                part = _decode_part(self._view.get("parts", lsn_key(lsn)))
                parts[part.index] = (lsn, part)
                has_row = cursor.next()
        return parts

    def _forget_parts(self, id: OperationId) -> None:
        for lsn, part in self._parts(id).values():
            self._delete("parts", lsn_key(lsn))
            self._delete("parts_of", _key(id) + _INDEX.pack(part.index))
            self.news.settle(part.tag)

    def _is_seen(self, id: OperationId) -> bool:
        if self._view.get("published", _key(id)) is not None:
            return True
        last = _last_number(self._view, id.publisher)
        return last is not None and id.number <= last - PUBLISHED_WINDOW

    def _remember(self, id: OperationId, lsn: Lsn) -> None:
        """Bounded: what has left the window goes now and then, and a publisher that has been
        quiet longest when there are too many."""
        if _last_number(self._view, id.publisher) is None:
            self._forget_a_publisher()
        self._put("published", _key(id), _encode(lsn))
        if id.number % _PRUNE_EVERY == 0:
            self._forget_numbers(id.publisher, id.number - PUBLISHED_WINDOW)

    def _forget_numbers(self, publisher: bytes, last: int) -> None:
        with self._txn.cursor(db=self._tables["published"]) as cursor:
            has_row = cursor.set_range(publisher)
            while has_row and bytes(cursor.key()[:8]) == publisher and lsn_of(cursor.key()) <= last:
                has_row = cursor.delete() and bool(cursor.key())

    def _forget_a_publisher(self) -> None:
        newest: dict[bytes, int] = {}
        with self._txn.cursor(db=self._tables["published"]) as cursor:
            has_row = cursor.first()
            while has_row:
                publisher = bytes(cursor.key()[:8])
                last = _last_number(self._view, publisher)
                assert last is not None  # its key is under the cursor
                at = self._view.get("published", publisher + _NUMBER.pack(last))
                newest[publisher] = _decode_number(at)
                has_row = cursor.set_range(publisher + b"\xff" * 9)
        if len(newest) >= PUBLISHERS_MAX:
            self._forget_numbers(min(newest, key=lambda each: newest[each]), (1 << 64) - 1)

    def _put_counter(self, name: str, value: int) -> None:
        self._put("counters", name.encode("ascii"), _encode(value))

    def _put(self, table: str, key: bytes, value: bytes) -> None:
        self._txn.put(key, value, db=self._tables[table])

    def _delete(self, table: str, key: bytes) -> None:
        self._txn.delete(key, db=self._tables[table])


def log_version(view: StoreView) -> int:
    """The newest version among the messages applied; servers of older ones have no part in it."""
    return view.counter(LOG_VERSION, FIRST_VERSION)


def open_operation(view: StoreView) -> OperationId | None:
    """The operation that has waited longest for its last message."""
    with view.txn.cursor(db=view.tables["parts"]) as cursor:
        if not cursor.first():
            return None
        part = _decode_part(cursor.value())
        return OperationId(part.publisher, part.number)


def last_on(view: StoreView, subject: str) -> Lsn:
    """The last message seen on the subject of a task log."""
    stored = view.get("subjects", subject_key(subject))
    return Lsn(0 if stored is None else _decode_number(stored))


def _key(id: OperationId) -> bytes:
    return id.publisher + _NUMBER.pack(id.number)


def _last_number(view: StoreView, publisher: bytes) -> int | None:
    with view.txn.cursor(db=view.tables["published"]) as cursor:
        has_row = cursor.set_range(publisher + b"\xff" * 9)
        if not (cursor.prev() if has_row else cursor.last()):
            return None
        key = bytes(cursor.key())
        return lsn_of(key) if key[:8] == publisher else None
