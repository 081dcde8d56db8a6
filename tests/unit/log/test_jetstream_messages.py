"""Messages of a log in JetStream without a server: how they are made, and what they mean."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadCall, Fenced
from penstock.log.address import log_address
from penstock.log.backends.jetstream import codec
from penstock.log.backends.jetstream.codec import (
    Message,
    Newer,
    OperationId,
    contended,
    decode,
    messages,
    operation_of,
    text_of,
    token,
    void_message,
)
from penstock.log.backends.jetstream.replay import (
    PUBLISHED_WINDOW,
    PUBLISHERS_MAX,
    Delivered,
    Replay,
    Void,
    last_on,
    log_version,
    open_operation,
)
from penstock.log.operations import AppendRecord, Mark, Operation, SetAux, TrimTag
from penstock.log.rules import Rules
from penstock.log.store.layout import TABLES, Tables
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn, StreamName
from support.log.drafts import draft, files, make, mark, pending, rows, take

ME, ELSE = b"publish1", b"publish2"


class Stream:
    """A store that messages are applied to as a stream would bring them."""

    def __init__(self, folder: Path) -> None:
        self.env = lmdb.open(str(folder), max_dbs=len(TABLES), map_size=1 << 28, sync=False)
        self.tables = Tables(self.env)
        self.at_ms = 1_000
        self.last = 0
        self.number = 0

    def put(self, *brought: Message) -> list[Any]:
        """What each message completes, or None."""
        answers = []
        for message in brought:
            self.last += 1
            with self.env.begin(write=True, buffers=True) as txn:
                replay = Replay(txn, self.tables, Rules(producers_max=100))
                delivered = Delivered(Lsn(self.last), self.at_ms, message.subject, message.body)
                outcome = replay.apply(delivered)
                answers.append(None if outcome is None else outcome.answer)
        return answers

    def made(self, operation: Operation, publisher: bytes = ME) -> list[Message]:
        self.number += 1
        return messages(OperationId(publisher, self.number), operation)

    def do(self, operation: Operation) -> Any:
        return self.put(*self.made(operation))[-1]

    def view(self) -> StoreView:
        return StoreView(self.env.begin(buffers=True), self.tables)


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Stream]:
    made = Stream(tmp_path)
    yield made
    made.env.close()


@pytest.mark.parametrize(
    "operation",
    [
        make(),
        rows(draft(0, 1), draft(1, 2, 3), producer="p", sequence=4),
        rows(),
        pending(draft(1, 2)),
        files("offsets/0", "state/1.changelog"),
        take(name="a query"),
        mark(1, 2, files={"offsets/0": 3}),
        AppendRecord(("a", "b"), b"\x00" * 10, ("a", Lsn(4)), "p", None, 5),
        AppendRecord(("a",), b""),
        SetAux(Lsn(3), b"aux"),
        TrimTag("a", Lsn(4)),
    ],
)
def test_an_operation_comes_back_as_it_was_sent(operation: Operation) -> None:
    decoded = [decode(each.body) for each in messages(OperationId(ME, 7), operation)]
    metas, payloads = zip(*(each for each in decoded if each is not None), strict=True)
    assert [meta.index for meta in metas] == list(range(len(decoded)))
    assert all(meta.id == (ME, 7) for meta in metas)
    assert operation_of(metas[-1], payloads) == operation


@pytest.mark.parametrize("body", [b"", b"\x01", b"\x01\x00\x00\x00\x01\x90", b"not ours at all"])
def test_what_others_publish_is_passed_over(stream: Stream, body: bytes) -> None:
    assert stream.put(Message("c", body)) == [None]
    assert stream.do(AppendRecord(("a",), b"x")) == 2


@given(st.text(min_size=1))
def test_every_text_is_a_token_of_its_own_and_comes_back(text: str) -> None:
    made = token(text)
    assert made.isascii()
    assert not set(made) & set(". *>\t\r\n")
    assert text_of(made) == text


def test_subjects_are_tags_and_only_the_task_log_is_contended() -> None:
    def subjects(operation: Operation) -> list[str]:
        return [each.subject for each in messages(OperationId(ME, 1), operation)]

    assert subjects(rows(draft(0, 1), draft(1, 2), stream="a.b")) == ["s.a=2Eb.0", "s.a=2Eb.1"]
    assert subjects(files("offsets/0", query="q")) == ["f.q"]
    assert subjects(mark(query="q")) == subjects(take("q")) == ["t.q"]
    assert contended(mark(query="q")) == contended(take("q")) == "t.q"
    assert subjects(AppendRecord(("a/b",), b"")) == ["x.a=2Fb"]
    assert subjects(AppendRecord(("a", "b"), b"")) == ["m.a"]
    assert subjects(make()) == ["c"]
    assert contended(rows(draft(0, 1))) is None


def test_places_are_those_of_the_messages_whatever_comes_between(stream: Stream) -> None:
    stream.do(make())
    first, second = stream.made(rows(draft(0, 1), draft(1, 2)))
    other = stream.made(AppendRecord(("a",), b"x"), ELSE)
    answers = stream.put(first, *other, second)
    assert answers[:2] == [None, 3]
    assert (answers[2].entries, answers[2].position) == ((2, 4), 4)


def test_nothing_is_seen_of_an_operation_until_its_last_message(stream: Stream) -> None:
    stream.do(make())
    first, second, last = stream.made(pending(draft(0, 1), draft(0, 2), draft(1, 3)))
    stream.do(take())
    stream.put(first, second)
    view = stream.view()
    assert list(view.tagged("s/s/0")) == []
    assert view.settled({"s/s/0", "a"}) == 2
    assert view.settled({"s/s/1", "a"}) == 4
    assert open_operation(view) == (ME, 2)
    assert stream.put(last) == [(3, 4, 5)]
    assert stream.view().settled({"s/s/0"}) == 5


def test_an_operation_that_lacks_a_message_is_void_and_late_ones_change_nothing(
    stream: Stream,
) -> None:
    stream.do(make())
    first, second, last = stream.made(rows(draft(0, 1), draft(0, 2), draft(0, 3)))
    answers = stream.put(first, last)
    assert isinstance(answers[1], Void)
    assert stream.put(second, first, last) == [None, None, None]
    assert stream.view().settled({"s/s/0"}) == stream.last
    assert list(stream.view().tagged("s/s/0")) == []


def test_what_a_server_left_half_published_can_be_taken_back(stream: Stream) -> None:
    stream.do(make())
    first, last = stream.made(rows(draft(0, 1), draft(0, 2)))
    stream.put(first)
    (answer,) = stream.put(void_message(OperationId(ME, stream.number)))
    assert isinstance(answer, Void)
    assert stream.put(last) == [None]
    assert open_operation(stream.view()) is None


def test_a_message_that_comes_twice_counts_once(stream: Stream) -> None:
    stream.do(make())
    first, last = stream.made(rows(draft(0, 1), draft(1, 2)))
    answers = stream.put(first, first, last, last, first)
    assert answers[2].entries == (2, 4)
    assert [answers[0], answers[1], *answers[3:]] == [None] * 4
    assert list(stream.view().tagged("s/s/0")) == [2]


def test_a_repeat_older_than_the_window_is_still_no_new_operation(stream: Stream) -> None:
    old = messages(OperationId(ME, 1), AppendRecord(("a",), b"x"))
    assert stream.put(*old) == [1]
    far = 2 * PUBLISHED_WINDOW  # a number at which the window is tidied up
    assert stream.put(*messages(OperationId(ME, far), AppendRecord(("a",), b"y"))) == [2]
    assert stream.view().txn.stat(stream.tables["published"])["entries"] == 1
    assert stream.put(*old) == [None]
    assert stream.put(*messages(OperationId(ELSE, 1), AppendRecord(("a",), b"z"))) == [4]


def test_publishers_are_remembered_up_to_a_bound_and_the_quiet_one_is_forgotten(
    stream: Stream,
) -> None:
    for each in range(PUBLISHERS_MAX + 3):
        publisher = each.to_bytes(8, "big")
        stream.put(*messages(OperationId(publisher, 1), AppendRecord(("a",), b"x")))
        if each > 0:  # the first one stays busy
            again = OperationId((0).to_bytes(8, "big"), each + 1)
            stream.put(*messages(again, AppendRecord(("a",), b"x")))
    with stream.view().txn.cursor(db=stream.tables["published"]) as cursor:
        known = {bytes(key[:8]) for key in cursor.iternext(values=False)}
    assert len(known) == PUBLISHERS_MAX
    assert (0).to_bytes(8, "big") in known
    assert (1).to_bytes(8, "big") not in known


def test_time_is_that_of_the_messages_and_never_goes_back(stream: Stream) -> None:
    stream.do(AppendRecord(("a",), b""))
    stream.at_ms = 500
    second = stream.do(AppendRecord(("a",), b""))
    stream.at_ms = 2_000
    third = stream.do(AppendRecord(("a",), b""))
    view = stream.view()
    heads = [view.head(lsn) for lsn in (Lsn(1), second, third)]
    assert [head.arrived_at_ms for head in heads if head is not None] == [1_000, 1_000, 2_000]


def test_refusals_leave_their_place_unused_and_are_remembered_on_the_task_log(
    stream: Stream,
) -> None:
    stream.do(take(run="one"))
    stream.do(take(run="two"))
    assert isinstance(stream.do(mark(instance=1)), Fenced)
    view = stream.view()
    assert (last_on(view, "t.q"), view.tail("t/q"), view.next_lsn) == (3, 2, 4)


def test_servers_that_apply_in_groups_of_any_size_hold_the_same(tmp_path: Path) -> None:
    draws = random.Random(7)
    first_stream, second_stream = Stream(tmp_path / "one"), Stream(tmp_path / "other")
    brought = [*first_stream.made(make()), *first_stream.made(take())]
    for number in range(60):
        expect = ("a", Lsn(draws.randrange(200))) if number % 3 else None
        choices: list[Operation] = [
            rows(draft(0, number), draft(1, number), producer="p", sequence=number // 2),
            pending(draft(1, number), draft(0, number)),
            AppendRecord(("a", "b"), b"x", expect),
            take(run=str(number % 5)),
        ]
        brought += first_stream.made(draws.choice(choices))
    draws.shuffle(brought)
    first_stream.put(*brought)
    with second_stream.env.begin(write=True, buffers=True) as txn:
        replay = Replay(txn, second_stream.tables, Rules(producers_max=100))
        for lsn, message in enumerate(brought, 1):
            replay.apply(Delivered(Lsn(lsn), first_stream.at_ms, message.subject, message.body))
    tables = []
    for each in (first_stream, second_stream):
        with each.env.begin() as txn:
            tables.append({name: list(txn.cursor(db=each.tables[name])) for name in TABLES})
        each.env.close()
    assert tables[0] == tables[1]


def test_a_message_that_only_a_newer_version_understands_is_not_passed_over(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stream.made(make())
    monkeypatch.delitem(codec._KINDS, "CreateStream")
    with pytest.raises(Newer, match="an operation 'CreateStream', which this server does not know"):
        stream.put(*made)
    newer = codec.VERSION + 1
    with pytest.raises(Newer, match=f"version {newer}, and this server reads up to {newer - 1}"):
        stream.put(of_version(newer, made[0]))


def of_version(version: int, message: Message) -> Message:
    return Message(message.subject, bytes([version]) + message.body[1:])


@pytest.mark.parametrize("version", [3, 4])
def test_a_batch_keeps_its_origin_from_version_4_on(stream: Stream, version: int) -> None:
    def put(operation: Operation) -> None:
        stream.put(*(of_version(version, message) for message in stream.made(operation)))

    for name in "sq":
        put(make(name))
    put(rows(draft(0, 1)))
    put(take())
    stream.at_ms += 500
    put(pending(draft(0, 1), stream="q"))
    marker = msgspec.structs.replace(mark(5, stream="q").marker, positions={"s": Lsn(3)})
    put(Mark(marker))
    view = stream.view()
    record = view.stream(StreamName("q"))
    assert record is not None
    commit = view.last_commit(record)
    assert commit is not None
    assert commit.origin_at_ms == (commit.arrived_at_ms - 500 if version == 4 else None)


def test_messages_of_version_1_count_until_one_of_a_later_version_and_are_passed_over_after_it(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    (first,) = stream.made(AppendRecord(("a",), b"x"), ELSE)
    (late,) = stream.made(AppendRecord(("a",), b"y"), ELSE)
    assert stream.put(of_version(1, first)) == [1]
    assert log_version(stream.view()) == 1
    assert stream.do(AppendRecord(("b",), b"x")) == 2
    assert log_version(stream.view()) == codec.VERSION
    assert stream.put(of_version(1, late)) == [None]
    assert list(stream.view().tagged("a")) == [1]
    assert stream.view().next_lsn == 4
    assert (
        f"message 3 is passed over: the server that published it, {ELSE.hex()}, is of version 1, "
        f"and the log has been of version {codec.VERSION} since"
    ) in caplog.text


def test_an_address_names_servers_and_a_stream() -> None:
    address = log_address("nats://user:secret@a:1,b,[::1]:3/bids")
    assert address.servers == ("a:1", "b:4222", "[::1]:3")
    assert address.name == "bids"
    assert address.urls[0] == "nats://user:secret@a:1"
    assert "secret" not in str(address)


@pytest.mark.parametrize(
    "wrong", ["a:1", "http://a", "nats://", "nats://a:x", "nats://a/b.c", "nats://,"]
)
def test_what_is_no_address_of_a_log_is_refused_with_the_form(wrong: str) -> None:
    with pytest.raises(BadCall, match=r"give nats://host:port"):
        log_address(wrong)
