"""What requests say: JSON bodies and query parameters, checked into typed values."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, TypeVar

import msgspec
from aiohttp import web

from penstock.errors import BadCall
from penstock.model.ids import (
    KEY_TEXT_BYTES_MAX,
    BatchId,
    Instance,
    Lsn,
    QueryId,
    file_path,
    stream_name,
)
from penstock.model.marker import FileRef, Marker, Snapshot, SnapshotFile, Write

NUMBER_MAX = (1 << 63) - 1

Number = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=NUMBER_MAX)]

T = TypeVar("T")


class StreamBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: str | None = None
    ddl: str | None = None
    substreams: Number | None = None
    key: list[str] | None = None


class InstanceBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    run: str
    name: str | None = None


class OtherStream(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stream: str
    after: Number


class AdmissionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stream: str
    after: Number
    query: str | None = None
    instance: Number | None = None
    rows_max: Positive | None = None
    bytes_max: Positive | None = None
    until: Number | None = None
    others: list[OtherStream] = []
    wait_ms: Number = 0


class WriteBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stream: str
    partition: Number
    attempt: Number
    entries: list[Number]


class FileBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    entry: Number


class SnapshotFileBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    entries: list[Number]
    file_bytes: Number
    crc32: Number


class SnapshotBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    folder: str
    batch: Number
    files: list[SnapshotFileBody]


class MarkerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    instance: Number
    batch: Number
    writes: list[WriteBody]
    commit: str | None = None
    positions: dict[str, Number] = {}
    mode: str = "append"
    files: list[FileBody] = []
    copied: Number | None = None
    snapshots: list[SnapshotBody] | None = None


class AlterBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`add` are columns to put at the end; 0 for an age or a size lifts that bound."""

    add: str | None = None
    schema: str | None = None
    ddl: str | None = None
    substreams: Positive | None = None
    age_ms_max: Number | None = None
    bytes_max: Number | None = None


class TrimBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    until: Number


class RegisterBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`start` is earliest or latest, for a consumer that is not known; or a position."""

    start: str | Number = "earliest"


class MoveBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    position: Number | None = None
    expect: Number | None = None


class MovesBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    streams: dict[str, MoveBody]


def bad_request(message: str) -> BadCall:
    return BadCall(message, code="bad_request")


async def body_of(request: web.Request, kind: type[T]) -> T:
    """The JSON body as `kind`; `bad_request` says which field is not as it should be."""
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except msgspec.ValidationError as error:
        raise bad_request(f"the body does not say what it should: {error}") from None
    except msgspec.DecodeError as error:
        raise bad_request(f"the body is not JSON: {error}; send one JSON object") from None


def marker_of(query: QueryId, body: MarkerBody) -> Marker:
    """The marker a body describes."""
    if body.commit is not None:
        try:
            base64.b64decode(body.commit, validate=True)
        except (binascii.Error, ValueError):
            raise bad_request("'commit' is not base64; encode the bytes, or send null") from None
    writes = tuple(
        Write(
            stream_name(write.stream),
            write.partition,
            write.attempt,
            tuple(Lsn(lsn) for lsn in write.entries),
        )
        for write in body.writes
    )
    files = tuple(FileRef(file_path(file.path), Lsn(file.entry)) for file in body.files)
    positions = {name: Lsn(position) for name, position in body.positions.items()}
    return Marker(
        query, Instance(body.instance), BatchId(body.batch), writes, body.commit, positions,
        body.mode, files, _snapshots(body),
    )  # fmt: skip


def _snapshots(body: MarkerBody) -> tuple[Snapshot, ...] | msgspec.UnsetType:
    if body.snapshots is None:
        return msgspec.UNSET
    return tuple(
        Snapshot(short_text(each.folder, "a store's folder"), BatchId(each.batch), tuple(
            SnapshotFile(
                file_path(file.path), tuple(Lsn(lsn) for lsn in file.entries), file.file_bytes,
                file.crc32,
            )
            for file in each.files
        ))
        for each in body.snapshots
    )  # fmt: skip


def is_number(text: str) -> bool:
    """Whether the text is digits, few enough to be a number of ours."""
    return text.isascii() and text.isdigit() and len(text) <= len(str(NUMBER_MAX))


def number_in(
    request: web.Request, name: str, default: int | None = None, high: int = NUMBER_MAX
) -> int | None:
    """A query parameter as a number from 0 to `high`."""
    text = request.query.get(name)
    if text is None:
        return default
    if not is_number(text) or int(text) > high:
        raise bad_request(f"{name} is {text!r}, and must be a number from 0 to {high}")
    return int(text)


def need_number(request: web.Request, name: str) -> int:
    value = number_in(request, name)
    if value is None:
        raise bad_request(f"{name} is missing; give it as ?{name}=…")
    return value


def short_text(text: str, what: str) -> str:
    """A name that goes into a key of the store."""
    size = len(text.encode("utf-8"))
    if not 1 <= size <= KEY_TEXT_BYTES_MAX or "\x00" in text:
        raise bad_request(
            f"{what} has {size} bytes, and must have 1 to {KEY_TEXT_BYTES_MAX}, none of them zero"
        )
    return text


def query_id(text: str) -> QueryId:
    return QueryId(short_text(text, "the query id"))
