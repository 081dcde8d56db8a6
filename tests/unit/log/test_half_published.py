"""Operations whose last message never came: taken back, and not for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from penstock.log.backends.jetstream.codec import Message, OperationId, messages, void_message
from penstock.log.backends.jetstream.half_published import HalfPublished
from penstock.log.backends.jetstream.replay import (
    PUBLISHED_WINDOW,
    Delivered,
    Replay,
    open_operation,
)
from penstock.log.operations import AppendRecord
from penstock.log.rules import Rules
from penstock.log.store.layout import TABLES, Tables
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn
from support.log.drafts import draft, make, rows

DEAD = b"deadserv"
OPEN = OperationId(DEAD, 1)


class Stream:
    """A store that messages are applied to as a stream would bring them."""

    def __init__(self, folder: Path) -> None:
        self.env = lmdb.open(str(folder), max_dbs=len(TABLES), map_size=1 << 26, sync=False)
        self.tables = Tables(self.env)
        self.last = 0

    def put(self, message: Message) -> None:
        self.last += 1
        with self.env.begin(write=True, buffers=True) as txn:
            brought = Delivered(Lsn(self.last), 1_000, message.subject, message.body)
            Replay(txn, self.tables, Rules()).apply(brought)

    def open(self) -> OperationId | None:
        with self.env.begin(buffers=True) as txn:
            return open_operation(StoreView(txn, self.tables))


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Stream]:
    made = Stream(tmp_path)
    yield made
    made.env.close()


def test_parts_of_an_operation_that_has_left_the_window_are_taken_back_too(
    stream: Stream,
) -> None:
    for message in messages(OperationId(b"another1", 1), make()):
        stream.put(message)
    first, _ = messages(OPEN, rows(draft(0, 1), draft(1, 2)))
    stream.put(first)
    later = OperationId(DEAD, 1 + PUBLISHED_WINDOW)
    for message in messages(later, AppendRecord(("a",), b"x")):
        stream.put(message)
    assert stream.open() == OPEN
    stream.put(void_message(OPEN))
    assert stream.open() is None


def test_an_operation_is_taken_back_once_it_has_waited_and_again_only_after_that_was_applied() -> (
    None
):
    half = HalfPublished()
    assert half.due(OPEN, Lsn(5), 0.0, 30.0) is None
    assert half.due(OPEN, Lsn(5), 30.0, 30.0) is None
    assert half.due(OPEN, Lsn(5), 31.0, 30.0) == OPEN
    half.published(Lsn(9))
    assert half.due(OPEN, Lsn(8), 10_000.0, 30.0) is None, "this server stands still"
    assert half.due(OPEN, Lsn(9), 10_000.0, 30.0) == OPEN, "it was applied, and did not help"
    half.published(Lsn(10))
    assert half.due(OPEN, Lsn(10), 10_031.0, 30.0) is None, "the pause doubles"
    assert half.due(None, Lsn(10), 10_032.0, 30.0) is None
    other = OperationId(DEAD, 2)
    assert half.due(other, Lsn(10), 10_033.0, 30.0) is None
    assert half.due(other, Lsn(10), 10_064.0, 30.0) == other
