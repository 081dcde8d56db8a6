"""The layout of the store: tables, keys, and the bytes of an entry.

    entries        lsn                          -> entry bytes (below)
    tags           tag, 0x00, lsn               -> nothing
    streams        name                         -> StreamRecord
    commits        stream id, commit lsn        -> Commit
    visible        stream id, substream, commit -> Covered
    origins        stream id, commit lsn        -> OriginLink, of commits older than their arrival
    producers      stream id, producer          -> ProducerState
    producer_uses  lsn                          -> key of the producer whose last append this is
    queries        query                        -> QueryRecord
    runs           query, 0x00, run             -> instance
    marks          query, 0x00, batch           -> marker lsn
    offsets        query, 0x00, batch           -> lsn of the newest offsets file, while unmarked
    record_seqs    producer, 0x00, seq          -> lsn, for the sequences within the window
    record_producers producer                   -> RecordedState
    record_uses    lsn                          -> producer whose last record this is
    aux            lsn                          -> auxiliary data of the entry
    waiting        query, 0x00, lsn             -> nothing; pending entries and files not named yet
    stores         query, 0x00, store's folder  -> StoreRecord
    consumers      reader, name, 0x00, stream   -> ConsumerRecord
    trims          `s/` with a stream, or a tag -> the place up to which it is no longer whole
    deleted        stream id                    -> DeletedStream, while entries of it are left
    parts          lsn                          -> part of an operation that is not complete yet
    parts_of       publisher, number, index     -> lsn of that part
    published      publisher, number            -> lsn of the operation's last message
    subjects       subject of a task log, or the
                   digest of a long one         -> lsn of its last message
    counters       name                         -> number; under `steady`, SteadyTime;
                                                under `starts`, pairs of a start and the place
                                                below which all that it gave is there

Folders written before format 5 may hold two more tables, `aligned` and `barriers`, which are left
as they are and read by nobody.

Numbers in keys are big-endian, so that the order of keys is the order of the log. Entry bytes are
one version byte, the head's length and checksum, the head, the payload; the head carries the
payload's checksum, so a payload in the wrong place is noticed too.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import lmdb
import msgspec
import xxhash

from penstock.errors import Damaged
from penstock.log.contract import Entry, Head
from penstock.model.answers import Appended
from penstock.model.ids import KEY_BYTES_MAX, Lsn

TABLES = (
    "entries",
    "tags",
    "streams",
    "commits",
    "visible",
    "origins",
    "producers",
    "producer_uses",
    "queries",
    "runs",
    "marks",
    "offsets",
    "record_seqs",
    "record_producers",
    "record_uses",
    "aux",
    "waiting",
    "stores",
    "consumers",
    "trims",
    "deleted",
    "parts",
    "parts_of",
    "published",
    "subjects",
    "counters",
)

_PREFIX = struct.Struct(">BIQ")
_VERSION = 1
_LSN = struct.Struct(">Q")
_STREAM = struct.Struct(">I")
_COMMIT = struct.Struct(">IQ")
_VISIBLE = struct.Struct(">IHQ")

Buffer = bytes | memoryview
encode_head = msgspec.msgpack.Encoder().encode
_decode_head = msgspec.msgpack.Decoder(Head).decode


class ProducerState(msgspec.Struct, frozen=True, array_like=True):
    """The stored form of the duplicate filter's record of one producer on one stream."""

    sequence: int
    answer: Appended
    heard_ms: int = 0


class RecordedState(msgspec.Struct, frozen=True, array_like=True):
    """The highest sequence of a producer of records, and the place of its newest record."""

    last: int
    lsn: Lsn
    heard_ms: int = 0


class SteadyTime(msgspec.Struct, frozen=True, array_like=True):
    """The log's steady time as far as it has come, and what the clock said then."""

    steady_ms: int = 0
    clock_ms: int = 0

    def moved_on(self, passed_ms: int, clock_ms: int) -> SteadyTime:
        return SteadyTime(self.steady_ms + passed_ms, clock_ms)

    def moved_to(self, clock_ms: int, step_ms_max: int) -> SteadyTime:
        """By what the clock says has passed: nothing if it went back, a bounded step if it jumped
        ahead, and nothing the first time."""
        passed_ms = clock_ms - self.clock_ms if self.clock_ms else 0
        return self.moved_on(min(max(0, passed_ms), step_ms_max), clock_ms)


class Part(msgspec.Struct, frozen=True, array_like=True):
    """A message that waits for the last one of its operation. `tag` is that of its entry; None if
    that is not known, so that the entry may be of any."""

    publisher: bytes
    number: int
    index: int
    at_ms: int
    payload: bytes
    tag: str | None = None


class PartTag(msgspec.Struct, frozen=True, array_like=True):
    """A part read for its tag alone: the payload is passed over where it lies."""

    publisher: msgspec.Raw
    number: int
    index: int
    at_ms: int
    payload: msgspec.Raw
    tag: str | None = None


class Tables:
    """Handles of the named tables of one open environment; those not there are made."""

    def __init__(self, env: lmdb.Environment) -> None:
        self._handles = {name: env.open_db(name.encode("ascii")) for name in TABLES}

    def __getitem__(self, name: str) -> Any:
        return self._handles[name]


def lsn_key(lsn: int) -> bytes:
    return _LSN.pack(lsn)


def lsn_of(key: Buffer) -> Lsn:
    """The number a key ends with."""
    return Lsn(_LSN.unpack(bytes(key[-8:]))[0])


def tag_key(tag: str, lsn: int) -> bytes:
    return tag.encode("utf-8") + b"\x00" + _LSN.pack(lsn)


def commit_key(stream_id: int, lsn: int) -> bytes:
    return _COMMIT.pack(stream_id, lsn)


def stream_prefix(stream_id: int) -> bytes:
    return _STREAM.pack(stream_id)


def visible_key(stream_id: int, substream: int, lsn: int) -> bytes:
    return _VISIBLE.pack(stream_id, substream, lsn)


def producer_key(stream_id: int, producer: str) -> bytes:
    return _STREAM.pack(stream_id) + producer.encode("utf-8")


def run_key(query: str, run: str) -> bytes:
    return query.encode("utf-8") + b"\x00" + run.encode("utf-8")


def mark_key(query: str, batch: int) -> bytes:
    return query.encode("utf-8") + b"\x00" + _LSN.pack(batch)


def waiting_key(query: str, lsn: int) -> bytes:
    return query.encode("utf-8") + b"\x00" + _LSN.pack(lsn)


def store_key(query: str, folder: str) -> bytes:
    return f"{query}\x00{folder}".encode()


def consumer_key(reader: str, name: str, stream: str) -> bytes:
    """One letter for the reader, so that a group and a query may have one name."""
    return f"{reader[0]}{name}\x00{stream}".encode()


def recorded_key(producer: str, seq: int) -> bytes:
    return producer.encode("utf-8") + b"\x00" + _LSN.pack(seq)


def subject_key(subject: str) -> bytes:
    """A subject can be longer than a key: names are escaped in it, and anybody may publish."""
    key = subject.encode("utf-8")
    return key if len(key) <= KEY_BYTES_MAX else b"\x00" + hashlib.blake2b(key).digest()


def encode_entry(entry: Entry) -> bytes:
    head = encode_head(entry.head)
    prefix = _PREFIX.pack(_VERSION, len(head), xxhash.xxh3_64_intdigest(head))
    return b"".join((prefix, head, entry.payload))


def decode_entry_head(lsn: Lsn, stored: Buffer) -> tuple[Head, int]:
    """The head and where the payload begins; `damaged` if the head is not what was written."""
    try:
        version, size, checksum = _PREFIX.unpack_from(stored)
        end = _PREFIX.size + size
        head_bytes = bytes(stored[_PREFIX.size : end])
        if version == _VERSION and xxhash.xxh3_64_intdigest(head_bytes) == checksum:
            head = _decode_head(head_bytes)
            if head.lsn == lsn and len(stored) == end + head.payload_bytes:
                return head, end
    except (struct.error, msgspec.DecodeError):
        pass
    raise damaged(lsn, "its head does not match its checksum")


def decode_payload(lsn: Lsn, stored: Buffer) -> tuple[Head, Buffer]:
    """The head and a view of the payload, both verified; the view lives as long as `stored`."""
    head, start = decode_entry_head(lsn, stored)
    payload = stored[start:]
    if xxhash.xxh3_64_intdigest(payload) != head.checksum:
        raise damaged(lsn, "its payload does not match its checksum")
    return head, payload


def damaged(lsn: Lsn, fact: str) -> Damaged:
    return Damaged(
        f"the entry {lsn} is damaged: {fact}; restore the data folder from a backup",
        code="damaged",
    )
