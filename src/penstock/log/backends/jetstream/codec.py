"""Operations on their way: their messages, their subjects, and back.

A message is one version byte, the length of what is said about it, that as MessagePack, then the
payload of the one entry it carries, as it is. An operation has a message for each of its entries,
or one if it has none. The last one holds the operation without its payloads; those before it are
nothing until it comes.
"""

from __future__ import annotations

import re
import struct
import typing
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.log.operations import (
    AppendFiles,
    AppendPending,
    AppendRecord,
    AppendRows,
    Mark,
    Operation,
    TakeQuery,
)

VERSION = 6
"""Raised with every change of what a message means, a decision's outcome included: servers that
decide differently would hold different logs. Messages of earlier versions are read as they are and
decided by the rules of theirs, up to the first one of this version."""
FIRST_VERSION = 1
_VERSIONS_END = 32

PUBLISHER_BYTES = 8
NUMBER_MAX = (1 << 63) - 1
MESSAGES_MAX = 1 << 31
"""Of one operation. What says more than these is no message of ours."""

_PREFIX = struct.Struct(">BI")
_PLAIN = re.compile(r"[A-Za-z0-9_\-]+")
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in typing.get_args(Operation)}


class OperationId(NamedTuple):
    """The name of an operation: the server run that published it, and its number there."""

    publisher: bytes
    number: int

    def __str__(self) -> str:
        return f"{self.publisher.hex()}.{self.number}"


class Meta(msgspec.Struct, frozen=True, array_like=True):
    """The facts of a message beside its payload: it is message `index` of `count` of an operation,
    which the last one holds. `kind` `void` takes back the operation it names."""

    publisher: bytes
    number: int
    index: int
    count: int
    kind: str = ""
    body: bytes = b""

    @property
    def id(self) -> OperationId:
        return OperationId(self.publisher, self.number)

    @property
    def is_last(self) -> bool:
        return self.index == self.count - 1


VOID = "void"

_encode = msgspec.msgpack.Encoder().encode
_decode_meta = msgspec.msgpack.Decoder(Meta).decode


class Message(NamedTuple):
    """One message on its way out: the subject below the log's own, and the body."""

    subject: str
    body: bytes


def messages(id: OperationId, operation: Operation) -> list[Message]:
    """The messages of an operation, in the order in which they must be published."""
    return [
        Message(subject, _message(meta, payload))
        for subject, meta, payload in _parts(id, operation)
    ]


def message_sizes(id: OperationId, operation: Operation) -> Iterator[tuple[str, int]]:
    """The subject and the bytes of each message of an operation, without making any of them."""
    for subject, meta, payload in _parts(id, operation):
        yield subject, _PREFIX.size + len(_encode(meta)) + len(payload)


def _parts(id: OperationId, operation: Operation) -> Iterator[tuple[str, Meta, bytes]]:
    payloads, bare = _taken_apart(operation)
    subjects = _subjects(operation)
    for index, (subject, payload) in enumerate(zip(subjects, payloads, strict=True)):
        meta = Meta(*id, index, len(payloads))
        if meta.is_last:
            kind = type(operation).__name__
            meta = Meta(*id, index, len(payloads), kind, msgspec.msgpack.encode(bare))
        yield subject, meta, payload


def void_message(id: OperationId) -> Message:
    """Says that the operation will not be completed."""
    return Message("c", _message(Meta(*id, 0, 1, VOID), b""))


def _message(meta: Meta, payload: bytes) -> bytes:
    meta_bytes = _encode(meta)
    return b"".join((_PREFIX.pack(VERSION, len(meta_bytes)), meta_bytes, payload))


class Newer(Exception):
    """A message that only a newer version of Penstock understands. To pass it over would be to
    hold another log than the server that published it."""


def decode(body: bytes) -> tuple[Meta, bytes] | None:
    """A message of ours taken apart; None for anything else that was published here."""
    try:
        version, size = _PREFIX.unpack_from(body)
        if VERSION < version < _VERSIONS_END:
            raise Newer(f"it has version {version}, and this server reads up to {VERSION}")
        if not FIRST_VERSION <= version <= VERSION:
            return None
        start = _PREFIX.size
        meta = _decode_meta(memoryview(body)[start : start + size])
    except (struct.error, msgspec.DecodeError):
        return None
    if len(meta.publisher) != PUBLISHER_BYTES or not 0 <= meta.number <= NUMBER_MAX:
        return None
    if not 0 <= meta.index < meta.count <= MESSAGES_MAX:
        return None
    return meta, body[start + size :]


def version_of(body: bytes) -> int:
    """The version of a message that `decode` has taken apart."""
    return body[0]


def operation_of(meta: Meta, payloads: Sequence[bytes]) -> Operation | None:
    """The operation of a last message, with the payloads of all its messages put back; None if
    they do not make one."""
    kind = _KINDS.get(meta.kind)
    if kind is None:
        raise Newer(f"it is an operation {meta.kind!r}, which this server does not know")
    try:
        bare = msgspec.msgpack.decode(meta.body, type=kind)
    except msgspec.DecodeError:
        return None
    return _put_together(bare, payloads)


def _taken_apart(operation: Operation) -> tuple[list[bytes], Operation]:
    replace = msgspec.structs.replace
    match operation:
        case AppendRows() | AppendPending() if operation.drafts:
            drafts = tuple(replace(draft, payload=b"") for draft in operation.drafts)
            payloads = [draft.payload for draft in operation.drafts]
            return payloads, replace(operation, drafts=drafts)
        case AppendFiles() if operation.files:
            files = tuple(replace(file, payload=b"") for file in operation.files)
            return [file.payload for file in operation.files], replace(operation, files=files)
        case AppendRecord():
            return [operation.payload], replace(operation, payload=b"")
    return [b""], operation


def _put_together(bare: Operation, payloads: Sequence[bytes]) -> Operation | None:
    replace = msgspec.structs.replace
    match bare:
        case AppendRows() | AppendPending() if bare.drafts:
            if len(bare.drafts) != len(payloads):
                return None
            pairs = zip(bare.drafts, payloads, strict=True)
            return replace(bare, drafts=tuple(replace(d, payload=p) for d, p in pairs))
        case AppendFiles() if bare.files:
            if len(bare.files) != len(payloads):
                return None
            files = zip(bare.files, payloads, strict=True)
            return replace(bare, files=tuple(replace(f, payload=p) for f, p in files))
        case AppendRecord():
            return replace(bare, payload=payloads[0])
    return bare


def _subjects(operation: Operation) -> list[str]:
    match operation:
        case AppendRows() | AppendPending() if operation.drafts:
            stream = token(operation.stream)
            return [f"s.{stream}.{draft.substream}" for draft in operation.drafts]
        case AppendFiles() if operation.files:
            return [f"f.{token(operation.query)}"] * len(operation.files)
        case TakeQuery():
            return [f"t.{token(operation.query)}"]
        case Mark():
            return [f"t.{token(operation.marker.query)}"]
        case AppendRecord() if operation.tags and operation.tags[0]:
            # Messages of one tag are purged with it; those of several when the last one goes.
            kind = "x" if len(set(operation.tags)) == 1 else "m"
            return [f"{kind}.{token(operation.tags[0])}"]
    return ["c"]


def contended(operation: Operation) -> str | None:
    """The subject whose last message must be the one its publisher knows: a task log's own, so
    that a take-over and a marker contend there."""
    return _subjects(operation)[0] if isinstance(operation, TakeQuery | Mark) else None


def tag_of(subject: str) -> str | None:
    """The tag whose entries the messages of a subject carry; None: of several tags."""
    kind, _, rest = subject.partition(".")
    if kind == "s":
        stream, _, substream = rest.partition(".")
        return f"s/{text_of(stream)}/{substream}"
    if kind in ("t", "f"):
        return f"{kind}/{text_of(rest)}"
    return text_of(rest) if kind == "x" else None


def token(text: str) -> str:
    """Text as one token of a subject: what a subject cannot hold is written as `=` and a byte in
    hex, so that no two texts meet."""
    if _PLAIN.fullmatch(text):
        return text
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
    raw = text.encode("utf-8", "backslashreplace")
    return "".join(chr(byte) if byte in plain else f"={byte:02X}" for byte in raw)


def text_of(token: str) -> str:
    """The text that `token` made a token of."""
    return re.sub(
        r"(?:=[0-9A-F]{2})+",
        lambda escape: bytes.fromhex(escape[0].replace("=", "")).decode("utf-8", "replace"),
        token,
    )
