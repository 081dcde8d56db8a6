"""Whether an operation fits into messages is known without making them."""

from __future__ import annotations

import tracemalloc

from penstock.log.backends.jetstream.codec import OperationId, message_sizes, messages
from penstock.log.operations import AppendRecord, AppendRows, Draft, TakeQuery
from penstock.model.ids import QueryId, StreamName, Substream

ID = OperationId(b"12345678", 7)


def test_sizes_are_those_of_the_messages() -> None:
    drafts = tuple(Draft(Substream(n), b"x" * n * 100, 1, n) for n in range(3))
    for operation in (
        AppendRows(StreamName("s"), drafts, "p", 1),
        AppendRows(StreamName("s"), ()),
        AppendRecord(("a", "b"), b"y" * 1_000),
        TakeQuery(QueryId("q"), "r", None),
    ):
        made = [(message.subject, len(message.body)) for message in messages(ID, operation)]
        assert list(message_sizes(ID, operation)) == made


def test_no_payload_is_copied_to_know_its_size() -> None:
    drafts = tuple(Draft(Substream(n), bytes(8 << 20), 1, n) for n in range(3))
    operation = AppendRows(StreamName("s"), drafts)
    tracemalloc.start()
    try:
        sizes = [size for _, size in message_sizes(ID, operation)]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert min(sizes) > 8 << 20
