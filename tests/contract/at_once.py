"""Histories in which several operations are under way at once, sent through both clients.

Whatever order the log gives them, the answers must be those of that order: it is told by the places
in the answers, and by the instances of take-overs.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from contract.changing import Changing
from contract.histories import SUBSTREAMS_MAX, client, query, stream, tag
from penstock.errors import PenstockError
from penstock.log.operations import AlterStream, AppendRecord, Operation
from penstock.model.ids import Lsn, StreamName
from support.log.drafts import draft, rows, take

LIMIT_S = 120
PARTS = [(0, [1]), (1, [2, 3])]

sent = st.tuples(
    client,
    st.sampled_from(["rows", "sequence", "expecting", "record", "take", "mark", "zombie", "alter"]),
    stream,
    query,
    tag,
)


@dataclass
class Sent:
    """An operation under way, and what became of it: an answer, or the code of a refusal."""

    kind: str
    stream: str
    query: str
    tag: str
    operation: Operation
    answer: Any = None
    refusal: str | None = None

    def wait(self, future: Future[Any]) -> None:
        try:
            self.answer = future.result(LIMIT_S)
        except PenstockError as error:
            self.refusal = error.code


class AtOnce(Changing):
    @rule(drawn=st.lists(sent, min_size=2, max_size=6))
    def send_at_once(self, drawn: list[tuple[int, str, str, str, str]]) -> None:
        self.backend.settle()
        all_sent, futures = [], []
        for number, kind, to, name, where in drawn:
            operation = self.made(kind, to, name, where)
            if operation is not None:
                all_sent.append(Sent(kind, to, name, where, operation))
                futures.append(self.log(number).submit(operation))
        for each, future in zip(all_sent, futures, strict=True):
            each.wait(future)
        for kind, judge in (
            ("sequence", self.judge_sequences), ("expecting", self.judge_expecting),
            ("mark", self.judge_marks), ("alter", self.judge_altered),
        ):  # fmt: skip
            judge([each for each in all_sent if each.kind == kind], all_sent)
        assert all(each.refusal == "fenced" for each in all_sent if each.kind == "zombie")
        assert all(not each.refusal for each in all_sent if each.kind in ("rows", "record", "take"))
        self.place(all_sent)
        self.judge_taken([each for each in all_sent if each.kind == "take"])

    def made(self, kind: str, to: str, name: str, where: str) -> Operation | None:
        drafts = [draft(place, *values) for place, values in PARTS]
        match kind:
            case "rows":
                return rows(*drafts, stream=to)
            case "sequence":
                last = self.sequences.get((to, "p"), 0)
                return rows(*drafts, stream=to, producer="p", sequence=last + 1)
            case "expecting":
                return AppendRecord((where,), b"x", (where, Lsn(self.tails.get(where, 0))))
            case "record":
                return AppendRecord((where,), b"y")
            case "take":
                return take(name, run=self.fresh_run())
            case "alter" if self.widths[to] < SUBSTREAMS_MAX:
                return AlterStream(StreamName(to), substreams=self.widths[to] + 1)
            case "mark" | "zombie" if name in self.instances:
                return self.marking(name, to, zombie=kind == "zombie")
        return None

    def place(self, all_sent: list[Sent]) -> None:
        """Bring the model up in the order of the places that were answered."""
        order: dict[int, Sent] = {}
        for each in all_sent:
            if each.kind in ("rows", "sequence") and not each.answer.duplicate:
                assert list(each.answer.entries) == sorted(each.answer.entries)
                order.update(dict.fromkeys(each.answer.entries, each))
            elif each.kind in ("expecting", "record", "mark") and each.refusal is None:
                assert order.get(each.answer, each).operation == each.operation
                order[each.answer] = each
        if order:
            self.grown(*sorted(order))
        for lsn, each in sorted(order.items()):
            if each.kind == "mark":
                self.mark_at(each.query, each.stream, lsn)
            elif each.kind in ("expecting", "record"):
                self.tags[each.tag].append(lsn)
                self.tails[each.tag] = lsn
            elif lsn == each.answer.position:
                self.show_at(each.stream, lsn, PARTS)

    def judge_sequences(self, sent: list[Sent], _: list[Sent]) -> None:
        """One of several with the same sequence is appended, and all are answered with that."""
        for name in {each.stream for each in sent}:
            same = [each for each in sent if each.stream == name]
            assert all(not each.refusal for each in same)
            assert [each.answer.duplicate for each in same].count(False) == 1
            assert len({each.answer.position for each in same}) == 1
            self.sequences[name, "p"] = self.sequences.get((name, "p"), 0) + 1

    def judge_expecting(self, sent: list[Sent], all_sent: list[Sent]) -> None:
        """Of several that expect the same, one is appended, and nothing came before it."""
        for where in {each.tag for each in sent}:
            same = [each for each in sent if each.tag == where]
            assert all(each.refusal in (None, "conflict") for each in same)
            on_tag = [
                each
                for each in all_sent
                if each.tag == where and each.kind in ("expecting", "record") and not each.refusal
            ]
            assert on_tag, "something must have come before those that were refused"
            first = min(on_tag, key=lambda each: each.answer)
            assert [each for each in same if not each.refusal] in ([], [first])

    def judge_marks(self, sent: list[Sent], all_sent: list[Sent]) -> None:
        """The next batch of a query is marked by whoever comes first, and by nobody after a
        take-over; who names something else is told."""
        for name in {each.query for each in sent}:
            same = [each for each in sent if each.query == name]
            is_taken = any(each.kind == "take" and each.query == name for each in all_sent)
            allowed = {None, "already_marked"} | ({"fenced"} if is_taken else set())
            assert {each.refusal for each in same} <= allowed
            assert is_taken or any(not each.refusal for each in same)
            assert len({each.answer for each in same if not each.refusal}) <= 1

    def judge_altered(self, sent: list[Sent], _: list[Sent]) -> None:
        for name in {each.stream for each in sent}:
            assert all(not each.refusal for each in sent if each.stream == name)
            self.widths[name] += 1

    def judge_taken(self, sent: list[Sent]) -> None:
        """Each run got an instance of its own, one after the other."""
        for name in {each.query for each in sent}:
            took = {each.answer.instance: each for each in sent if each.query == name}
            count = self.counted.get(name, 0)
            takes = sum(1 for each in sent if each.query == name)
            assert sorted(took) == list(range(count + 1, count + 1 + takes))
            operation = took[max(took)].operation
            self.taken(name, max(took), operation.run)  # type: ignore[union-attr]
