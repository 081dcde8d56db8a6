"""How streams change, on a real store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.admission.cut import cut_batch
from penstock.errors import PenstockError
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import (
    AlterStream,
    CreateStream,
    DeleteStream,
    Operation,
    Register,
    Shape,
    SweepStream,
)
from penstock.log.reading.visible import current, earliest, latest
from penstock.log.state import Retention
from penstock.model.ids import Lsn, StreamName
from penstock.model.schema import schema_of
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from support.log.drafts import draft, make, mark, pending, rows, take

S = StreamName("s")


def message(ddl: str) -> bytes:
    return bytes(schema_of(ddl).serialize().to_pybytes())


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog.open(tmp_path / "data", Settings(), ManualClock())
    log.run(make())
    yield log
    invariants.check(log)
    log.close()


def refused(log: EmbeddedLog, operation: Operation, code: str) -> str:
    with pytest.raises(PenstockError) as caught:
        log.run(operation)
    assert caught.value.code == code
    return caught.value.message


def test_columns_are_added_at_the_end_and_older_writers_find_their_stream(
    log: EmbeddedLog,
) -> None:
    altered = log.run(AlterStream(S, message("k bigint, note string")))
    assert altered.versions == (message("k bigint"),)
    assert not log.run(make()).created
    refused(log, CreateStream(S, message("k string"), None, None), "stream_differs")
    again = log.run(AlterStream(S, message("k bigint, note string")))
    assert again == altered


@pytest.mark.parametrize(
    ("ddl", "fact"),
    [
        ("note string", "'k' would be dropped"),
        ("k int", "'k' is bigint and would become int"),
        ("k string", "may not hold its values"),
        ("note string, k bigint", "would change its place"),
    ],
)
def test_a_change_that_would_lose_data_is_refused(log: EmbeddedLog, ddl: str, fact: str) -> None:
    assert fact in refused(log, AlterStream(S, message(ddl)), "would_lose_data")


def test_an_entry_says_which_columns_it_has(log: EmbeddedLog) -> None:
    first = log.run(rows(draft(0, 1))).position
    log.run(AlterStream(S, message("k bigint, note string")))
    operation = rows(draft(0, 2))
    late = type(operation)(S, operation.drafts, shape=Shape(1, 0))
    second = log.run(late).position
    with log.reading() as view:
        assert [view.head(lsn).version for lsn in (first, second)] == [0, 0]  # type: ignore[union-attr]
        assert pa.ipc.read_schema(pa.py_buffer(view.stream(S).schema)).names == [  # type: ignore[union-attr]
            "k",
            "note",
        ]


def test_rows_routed_before_substreams_were_added_are_routed_anew(log: EmbeddedLog) -> None:
    log.run(AlterStream(S, substreams=4))
    operation = rows(draft(0, 2))
    routed = type(operation)(S, operation.drafts, shape=Shape(1, 0, routed_by=2))
    assert "try again" in refused(log, routed, "stream_altered")
    placed = type(operation)(S, operation.drafts, shape=Shape(1, 0))
    assert log.run(placed).rows == 1


def test_substreams_only_grow_and_no_batch_spans_the_change(log: EmbeddedLog) -> None:
    for value in range(3):
        log.run(rows(draft(0, value)))
    assert "rows stay where they are" in refused(
        log, AlterStream(S, substreams=1), "would_lose_data"
    )
    log.run(AlterStream(S, substreams=3))
    for value in range(3):
        log.run(rows(draft(2, value)))
    with log.reading() as view:
        stream = view.stream(S)
        assert stream is not None
        assert stream.turns == (3,)
        ends = [cut_batch(view, stream, Lsn(after), Lsn(6)).end for after in range(7)]
    assert ends == [3, 3, 3, 6, 6, 6, 6]


def test_a_stream_in_use_is_deleted_only_by_force(log: EmbeddedLog) -> None:
    log.run(Register("group", "g", S, Lsn(0)))
    log.run(take())
    (entry,) = log.run(pending(draft(0, 1)))
    log.run(mark(entry))
    said = refused(log, DeleteStream(S), "stream_in_use")
    assert "the group 'g'" in said
    assert "the query 'q', which writes to it" in said
    log.run(DeleteStream(S, force=True))
    refused(log, rows(draft(0, 1)), "unknown_stream")
    with log.reading() as view:
        assert list(view.consumers()) == []


def test_a_deleted_stream_is_swept_in_steps_and_its_name_is_free_at_once(log: EmbeddedLog) -> None:
    for value in range(10):
        log.run(rows(draft(value % 2, value), producer="p", sequence=value + 1))
    with log.reading() as view:
        old = view.stream(S)
        assert old is not None
    log.run(DeleteStream(S))
    log.run(make(substreams=1))
    fresh = log.run(rows(draft(0, 99))).position
    invariants.check(log)
    steps = 0
    while log.run(SweepStream(old.id, 4)).entries:
        steps += 1
        invariants.check(log)
    assert steps > 2
    with log.reading() as view:
        new = view.stream(S)
        assert new is not None
        assert new.id != old.id
        assert (earliest(view, new), latest(view, new)) == (10, fresh)
        assert [lsn for lsn in range(1, 12) if view.head(Lsn(lsn)) is not None] == [fresh]
        assert list(view.all_deleted()) == []
        with pytest.raises(PenstockError, match="another one has its name"):
            current(view, old)


def test_retention_is_a_property_of_a_stream(log: EmbeddedLog) -> None:
    altered = log.run(AlterStream(S, retention=Retention(1_000, None)))
    assert altered.retention == Retention(1_000, None)
    assert log.run(AlterStream(S, retention=Retention())).retention == Retention()


def test_a_schema_is_the_same_by_its_columns_and_not_by_its_bytes(log: EmbeddedLog) -> None:
    named = schema_of("k bigint").with_metadata({"made by": "another version"})
    other_bytes = bytes(named.serialize().to_pybytes())
    assert other_bytes != message("k bigint")
    assert not log.run(CreateStream(S, other_bytes, None, None)).created
    altered = log.run(AlterStream(S, other_bytes))
    assert (altered.versions, altered.schema) == ((), message("k bigint"))
