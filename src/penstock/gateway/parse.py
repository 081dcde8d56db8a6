"""Requests parsed: JSON bodies, query parameters and headers, checked into typed values."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection
from typing import TypeVar

import msgspec
from aiohttp import web

from penstock.errors import BadCall
from penstock.model.ids import (
    KEY_TEXT_BYTES_MAX,
    BatchId,
    Instance,
    Lsn,
    QueryId,
    StreamName,
    file_path,
    stream_name,
)
from penstock.model.marker import FileRef, GivenPlaces, Marker, Snapshot, SnapshotFile, Write
from penstock.model.numbers import NUMBER_MAX
from penstock.model.requests import MarkerBody

T = TypeVar("T")


def bad_request(message: str) -> BadCall:
    return BadCall(message, code="bad_request")


def request_too_large(bound: int) -> BadCall:
    return BadCall(
        f"the request is larger than {bound} bytes; send it in parts",
        code="request_too_large",
        status=413,
    )


def json_of(body: bytes, kind: type[T]) -> T:
    """A JSON body as `kind`; `bad_request` says which field is not as it should be."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise bad_request(f"the body does not say what it should: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is not JSON: {error}; send one JSON object") from None


def early_in(request: web.Request) -> bool:
    """Whether the writer takes an answer before the sync, and names its start in the marker."""
    text = request.query.get("early", "0")
    if text not in ("0", "1"):
        raise bad_request(f"early is {text!r}, and must be 0 or 1")
    return text == "1"


def marker_of(query: QueryId, body: MarkerBody) -> Marker:
    """The marker a body describes."""
    _check_base64("commit", body.commit)
    _check_base64("offsets", body.offsets)
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
        msgspec.UNSET if body.offsets is None else body.offsets,
        _starts(body),
    )  # fmt: skip


def _check_base64(field: str, text: str | None) -> None:
    try:
        base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(f"'{field}' is not base64; encode the bytes, or send null") from None


def _starts(body: MarkerBody) -> tuple[GivenPlaces, ...] | msgspec.UnsetType:
    """Starts that answered early; none is the same as left out."""
    if not body.starts:
        return msgspec.UNSET
    return tuple(GivenPlaces(given.start, Lsn(given.last)) for given in body.starts)


def _snapshots(body: MarkerBody) -> tuple[Snapshot, ...] | msgspec.UnsetType:
    if body.snapshots is None:
        return msgspec.UNSET
    return tuple(
        Snapshot(short_text(snapshot.folder, "a store's folder"), BatchId(snapshot.batch), tuple(
            SnapshotFile(
                file_path(file.path), tuple(Lsn(lsn) for lsn in file.entries), file.file_bytes,
                file.crc32,
            )
            for file in snapshot.files
        ))
        for snapshot in body.snapshots
    )  # fmt: skip


def is_number(text: str) -> bool:
    """Whether the text is digits, few enough to be a number of ours."""
    return text.isascii() and text.isdigit() and len(text) <= len(str(NUMBER_MAX))


def check_parameters(request: web.Request, known: Collection[str]) -> None:
    """Refuse a request with query parameters that its route does not know."""
    unknown = sorted(set(request.query) - set(known))
    if unknown:
        raise bad_request(
            f"{request.method} {request.path} has no parameter {', '.join(unknown)}; it takes "
            f"{', '.join(sorted(known))}"
        )


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


def short_text(text: str, subject: str) -> str:
    """A name that goes into a key of the store."""
    size = len(text.encode("utf-8"))
    if not 1 <= size <= KEY_TEXT_BYTES_MAX or "\x00" in text:
        raise bad_request(
            f"{subject} has {size} bytes, and must have 1 to {KEY_TEXT_BYTES_MAX}, none of them "
            "zero"
        )
    return text


def producer_of(producer: str | None, text: str | None) -> tuple[str | None, int | None]:
    """The producer and the sequence that headers name; both or none."""
    if (producer is None) != (text is None):
        raise bad_request(
            "the headers Penstock-Producer and Penstock-Sequence go together; send both or none"
        )
    if producer is None or text is None:
        return None, None
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise bad_request(
            f"the header Penstock-Sequence is {text!r}, and must be a number of up to 18 digits"
        )
    return short_text(producer, "the header Penstock-Producer"), int(text)


def query_id(text: str) -> QueryId:
    return QueryId(short_text(text, "the query id"))


def stream_in_path(request: web.Request) -> StreamName:
    """The name of the stream in the request's path."""
    return stream_name(request.match_info["stream"])


def query_in_path(request: web.Request) -> QueryId:
    """The id of the query in the request's path."""
    return query_id(request.match_info["query"])
