"""State, buffers, frames, and what an outside reader takes for visible."""

from __future__ import annotations

import pytest

from penstock.errors import BadCall
from penstock.log.contract import Entry, Head
from penstock.model.ids import Instance, Lsn
from penstock_lab.baselines.task_graph.messages import (
    Barrier,
    Completed,
    Payload,
    Restored,
    Rows,
    decode,
    encode,
)
from penstock_lab.baselines.task_graph.output_buffer import OutputBuffer
from penstock_lab.baselines.task_graph.reader import Checkpointed, visible_under
from penstock_lab.baselines.task_graph.socket_calls import MessageDecoder, encoded_message
from penstock_lab.baselines.task_graph.state import State


def test_changes_name_each_key_once_with_its_last_value() -> None:
    state = State()
    state.put("t", 1, "a")
    state.put("t", 1, "b")
    state.put("t", 2, "c")
    state.drop("t", 2)
    assert state.take_changes() == [("t", 1, "b"), ("t", 2, None)]
    assert state.take_changes() == []


def test_replayed_changes_make_the_same_state_and_are_no_changes() -> None:
    state, again = State(), State()
    state.put("t", 1, (2, "x"))
    state.put("u", 5, 6)
    first = state.take_changes()
    state.drop("u", 5)
    again.replay(first)
    again.replay(state.take_changes())
    assert again.table("t") == {1: (2, "x")}
    assert again.table("u") == {}
    assert again.take_changes() == []


def test_a_snapshot_brings_everything_back() -> None:
    state, again = State(), State()
    state.put("t", 1, [2, "x"])
    again.put("t", 9, "left over")
    again.restore(state.snapshot())
    assert again.table("t") == {1: [2, "x"]}
    assert again.take_changes() == []


def test_a_buffer_says_when_it_is_full_and_is_empty_once_taken() -> None:
    output = OutputBuffer(2, buffer_bytes=20)
    assert not output.put(1, (1, "aaaaaaaa"))
    assert output.put(1, (2, "bbbbbbbb"))
    assert output.filled == [1]
    taken = decode(output.take(1, clock_us=5, epoch=3))
    assert taken == Rows(5, [[1, "aaaaaaaa"], [2, "bbbbbbbb"]], 3)
    assert output.filled == []


def test_frames_are_cut_wherever_the_bytes_are() -> None:
    sent = encoded_message([1, "a"]) + encoded_message([2, b"b" * 1_000])
    for size in (1, 3, 7, len(sent)):
        frames = MessageDecoder()
        got = [
            message
            for at in range(0, len(sent), size)
            for message in frames.feed(sent[at : at + size])
        ]
        assert got == [[1, "a"], [2, b"b" * 1_000]]


def test_a_frame_that_is_none_is_refused() -> None:
    with pytest.raises(BadCall, match="not one of ours"):
        list(MessageDecoder().feed(b"\xff\xff\xff\xff"))


def entry(lsn: int, payload: Payload, attempt: int = 1) -> Entry:
    body = encode(payload)
    head = Head(Lsn(lsn), "record", ("t",), 0, 0, len(body), 0, "p", Instance(attempt), lsn)
    return Entry(head, body)


def test_rows_are_visible_when_their_checkpoint_is_complete() -> None:
    reader = Checkpointed()
    first, second = entry(2, Rows(0, [[1]], epoch=1)), entry(4, Rows(0, [[2]], epoch=2))
    assert reader.shown_by(entry(1, Restored(Instance(1), 0, Lsn(0)))) == []
    assert reader.shown_by(first) == []
    assert reader.shown_by(entry(3, Barrier(1))) == []
    assert reader.shown_by(second) == []
    assert reader.shown_by(entry(5, Completed(1, Lsn(1)))) == [first.payload]
    assert reader.shown_by(entry(6, Completed(2, Lsn(2)))) == [second.payload]


def test_what_an_earlier_attempt_left_is_never_visible() -> None:
    reader = Checkpointed()
    reader.shown_by(entry(1, Restored(Instance(1), 0, Lsn(0))))
    reader.shown_by(entry(2, Rows(0, [[1]], epoch=1)))
    reader.shown_by(entry(3, Restored(Instance(2), 0, Lsn(0)), attempt=2))
    reader.shown_by(entry(4, Rows(0, [[2]], epoch=1), attempt=1))
    again = entry(5, Rows(0, [[1]], epoch=1), attempt=2)
    reader.shown_by(again)
    assert reader.shown_by(entry(6, Completed(1, Lsn(1)), attempt=2)) == [again.payload]


def test_without_a_protocol_rows_are_visible_at_once() -> None:
    row = entry(1, Rows(0, [[1]]))
    assert visible_under("unsafe").shown_by(row) == [row.payload]
