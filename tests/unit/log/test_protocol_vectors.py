"""The code against the vectors that go with PROTOCOL.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import xxhash

from penstock.errors import PenstockError
from penstock.log.backends.jetstream import codec
from penstock.log.contract import Entry, Head
from penstock.log.decide import decide
from penstock.log.operations import Operation
from penstock.log.plan import Plan
from penstock.log.raw.classify import (
    Bounds,
    Classifier,
    Committed,
    Discarded,
    Recall,
    Verdict,
)
from penstock.log.raw.entry_facts import Fact, fact_of
from penstock.log.retired_operations import RetiredOperation
from penstock.log.store import layout
from penstock.model.ids import (
    Lsn,
    QueryId,
    StreamName,
    Substream,
    files_tag,
    substream_tag,
    task_log_tag,
)
from penstock.model.marker import Marker, Stamp, TakeOver
from penstock.model.protocol import PROTOCOL, PROTOCOL_HEADER
from penstock.model.task_records import decode_control, encode_control
from support.log.state import State

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "protocol.json").read_text("utf-8")
)
TAGS: dict[str, Callable[..., str]] = {
    "substream": lambda stream, place: substream_tag(StreamName(stream), Substream(place)),
    "task log": lambda query: task_log_tag(QueryId(query)),
    "files": lambda query: files_tag(QueryId(query)),
}


def named(part: str) -> list[Any]:
    return [pytest.param(vector, id=vector["name"]) for vector in VECTORS[part]]


def test_the_page_and_the_vectors_have_one_version() -> None:
    page = (Path(__file__).parents[3] / "PROTOCOL.md").read_text("utf-8")
    assert f"Version {VECTORS['version']}." in page
    assert VECTORS["version"] == PROTOCOL == codec.VERSION


def test_pages_and_plug_in_name_the_version_of_the_code() -> None:
    root = Path(__file__).parents[3]
    pages = [path.read_text("utf-8") for path in (root / "docs").rglob("*.md")]
    assert {n for page in pages for n in re.findall(rf"{PROTOCOL_HEADER}: (\d+)", page)} == {
        str(PROTOCOL)
    }
    plug_in = (root / "jvm/src/penstock/client/Gateway.scala").read_text("utf-8")
    assert f'val ProtocolVersion = "{PROTOCOL}"' in plug_in


@pytest.mark.parametrize("vector", VECTORS["tags"], ids=lambda vector: vector["tag"])
def test_a_tag_is_made_as_written_down(vector: dict[str, Any]) -> None:
    kind, *names = vector["of"]
    assert TAGS[kind](*names) == vector["tag"]


def to_entry(fields: dict[str, Any], payload: bytes) -> Entry:
    rest = {"arrived_at_ms": 0, **fields, "tags": tuple(fields["tags"])}
    if "stamp" in fields:
        rest["stamp"] = msgspec.convert(fields["stamp"], Stamp)
    checksum = xxhash.xxh3_64_intdigest(payload)
    return Entry(Head(checksum=checksum, payload_bytes=len(payload), **rest), payload)


@pytest.mark.parametrize("vector", named("entries"))
def test_an_entry_is_stored_as_written_down(vector: dict[str, Any]) -> None:
    entry = to_entry(vector["head"], bytes.fromhex(vector["payload"]))
    assert f"{entry.head.checksum:016x}" == vector["checksum"]
    stored = bytes.fromhex(vector["stored"])
    assert layout.encode_entry(entry) == stored
    head, payload = layout.decode_payload(entry.head.lsn, stored)
    assert (head, bytes(payload)) == (entry.head, entry.payload)


@pytest.mark.parametrize("vector", named("markers"))
def test_a_marker_is_read_and_written_as_written_down(vector: dict[str, Any]) -> None:
    marker = msgspec.json.decode(vector["text"], type=Marker)
    assert msgspec.json.encode(marker).decode() == vector["text"]


@pytest.mark.parametrize("vector", named("take_overs"))
def test_a_take_over_is_read_and_written_as_written_down(vector: dict[str, Any]) -> None:
    taken = msgspec.json.decode(vector["text"], type=TakeOver)
    assert msgspec.json.encode(taken).decode() == vector["text"]


@pytest.mark.parametrize("vector", named("controls"))
def test_a_control_record_is_read_and_written_as_written_down(vector: dict[str, Any]) -> None:
    assert encode_control(decode_control(vector["text"])).decode() == vector["text"]


@pytest.mark.parametrize("vector", VECTORS["tokens"], ids=lambda vector: vector["token"])
def test_a_name_becomes_one_token_of_a_subject(vector: dict[str, Any]) -> None:
    assert codec.token(vector["text"]) == vector["token"]


def from_plain(value: Any) -> Any:
    """Bytes stand in JSON as {"hex": ...}."""
    match value:
        case {"hex": text}:
            return bytes.fromhex(text)
        case dict():
            return {key: from_plain(item) for key, item in value.items()}
        case list():
            return [from_plain(item) for item in value]
    return value


@pytest.mark.parametrize("vector", named("operations"))
def test_an_operation_travels_as_written_down(vector: dict[str, Any]) -> None:
    kinds = {kind.__name__: kind for kind in Operation.__args__}
    plain = from_plain(vector["operation"])
    operation = msgspec.convert(plain, kinds[vector["kind"]], builtin_types=(bytes,))
    id = codec.OperationId(bytes.fromhex(vector["publisher"]), vector["number"])
    bodies = [bytes.fromhex(message["body"]) for message in vector["messages"]]
    subjects = [message["subject"] for message in vector["messages"]]
    made = codec.messages(id, operation)
    assert [(message.subject, message.body) for message in made] == list(
        zip(subjects, bodies, strict=True)
    )
    read = [codec.decode(body) for body in bodies]
    metas = [decoded[0] for decoded in read if decoded is not None]
    assert [(meta.id, meta.index, meta.count) for meta in metas] == [
        (id, place, len(bodies)) for place in range(len(bodies))
    ]
    payloads = [decoded[1] for decoded in read if decoded is not None]
    assert codec.operation_of(metas[-1], payloads) == operation


def test_an_operation_is_taken_back_as_written_down() -> None:
    vector = VECTORS["void"]
    id = codec.OperationId(bytes.fromhex(vector["publisher"]), vector["number"])
    message = codec.void_message(id)
    assert (message.subject, message.body.hex()) == (vector["subject"], vector["body"])


@pytest.mark.parametrize("vector", named("retired"))
def test_an_operation_of_version_1_alone_is_read_and_changes_nothing(
    vector: dict[str, Any],
) -> None:
    decoded = codec.decode(bytes.fromhex(vector["body"]))
    assert decoded is not None
    operation = codec.operation_of(decoded[0], [decoded[1]])
    assert isinstance(operation, RetiredOperation)
    assert decide(operation, State()) == Plan(None)
    assert not Plan(None).changes


@pytest.mark.parametrize("vector", named("classifier"))
def test_a_reader_decides_as_written_down(vector: dict[str, Any]) -> None:
    reader = Reader(Bounds(**vector["bounds"]))
    for step in vector["steps"]:
        fields = dict(step["entry"])
        payload = fields.pop("payload", None)
        body = b"a row" if payload is None else json.dumps(payload).encode()
        assert reader.read(to_entry(fields, body)) == step["verdicts"], step["entry"]


class Reader:
    """A classifier whose recalls are answered from what it was fed."""

    def __init__(self, bounds: Bounds) -> None:
        self.classifier = Classifier(bounds)
        self.fed: list[Fact] = []

    def read(self, entry: Entry) -> list[list[Any]]:
        fact = fact_of(entry)
        assert fact is not None
        self.fed.append(fact)
        try:
            return [
                plain_verdict
                for verdict in self.classifier.feed(fact)
                for plain_verdict in self.plain(verdict)
            ]
        except PenstockError as error:
            return [["error", error.code]]

    def plain(self, verdict: Verdict) -> list[list[Any]]:
        match verdict:
            case Committed():
                return [["committed", verdict.lsn, verdict.by]]
            case Discarded():
                return [["discarded", verdict.lsn, verdict.reason]]
            case Recall():
                again = [fact for fact in self.fed if Lsn(verdict.first) <= fact.lsn]
                settled = self.classifier.recall(verdict, again)
                return [
                    ["recall", verdict.first],
                    *(plain_verdict for each in settled for plain_verdict in self.plain(each)),
                ]
