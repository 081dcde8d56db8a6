"""Histories in which consumers come and go, and streams and queries are altered and deleted."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from contract.histories import SUBSTREAMS, SUBSTREAMS_MAX, Histories, client, query, stream
from penstock.log.operations import (
    AlterStream,
    DeleteQuery,
    DeleteStream,
    ForgetConsumer,
    Move,
    MovePosition,
    Register,
    ResetQuery,
    SweepStream,
)
from penstock.log.state import stream_point
from penstock.model.ids import Lsn, QueryId, StreamName
from support.log.drafts import make

SWEPT_AT_ONCE = 3

group = st.sampled_from(["g", "h"])


class Changing(Histories):
    def positions(self, name: str) -> list[int]:
        """Where a consumer of the stream may be."""
        return [self.trimmed[name], *(commit for commit, _ in self.shown[name])]

    @rule(number=client, who=group, name=stream, back=st.integers(0, 3))
    def register(self, number: int, who: str, name: str, back: int) -> None:
        positions = self.positions(name)
        position = positions[max(0, len(positions) - 1 - back)]
        registered = self.log(number).run(Register("group", who, StreamName(name), Lsn(position)))
        assert registered.position == self.consumers.setdefault((who, name), position)

    @precondition(lambda self: self.consumers)
    @rule(number=client, data=st.data(), right=st.booleans())
    def move(self, number: int, data: st.DataObject, right: bool) -> None:
        who, name = data.draw(st.sampled_from(sorted(self.consumers)))
        position = data.draw(st.sampled_from(self.positions(name)))
        at = self.consumers[who, name]
        expect = Lsn(at if right else self.last + 100)
        operation = MovePosition("group", who, (Move(StreamName(name), Lsn(position), expect),))
        if not right and at != position:
            self.refused(number, operation, "conflict")
            return
        self.log(number).run(operation)
        self.consumers[who, name] = position

    @precondition(lambda self: self.consumers)
    @rule(number=client, data=st.data())
    def forget(self, number: int, data: st.DataObject) -> None:
        who, name = data.draw(st.sampled_from(sorted(self.consumers)))
        self.log(number).run(ForgetConsumer("group", who, StreamName(name)))
        del self.consumers[who, name]

    @rule(number=client, name=stream, more=st.integers(-1, 1))
    def alter_stream(self, number: int, name: str, more: int) -> None:
        width = self.widths[name] + more
        if width > SUBSTREAMS_MAX:
            return
        operation = AlterStream(StreamName(name), substreams=width)
        if more < 0:
            self.refused(number, operation, "would_lose_data")
            return
        assert self.log(number).run(operation).substreams == width
        self.widths[name] = width

    @rule(number=client, name=stream, swept=st.integers(0, 3))
    def delete_stream_and_make_it_again(self, number: int, name: str, swept: int) -> None:
        if any(of == name for _, of in self.consumers):
            self.refused(number, DeleteStream(StreamName(name)), "stream_in_use")
        gone = self.log(number).run(DeleteStream(StreamName(name), force=True))
        for _ in range(swept):
            self.log(number).run(SweepStream(gone.id, SWEPT_AT_ONCE))
        self.log(1 - number).run(make(name, SUBSTREAMS))
        self.backend.settle()
        with self.log(number).reading() as view:
            end = view.trimmed(stream_point(StreamName(name)))
        assert max(self.positions(name)) <= end <= self.last, "it begins where the other ended"
        self.shown[name], self.trimmed[name] = [], end
        self.widths[name] = SUBSTREAMS
        self.sequences = {key: last for key, last in self.sequences.items() if key[0] != name}
        self.consumers = {key: at for key, at in self.consumers.items() if key[1] != name}
        for waiting in self.waiting.values():
            waiting[:] = [each for each in waiting if each[2] != name]

    @precondition(lambda self: self.instances)
    @rule(number=client, name=query, is_deleted=st.booleans())
    def begin_a_query_anew(self, number: int, name: str, is_deleted: bool) -> None:
        if name not in self.instances:
            return
        if is_deleted:
            self.log(number).run(DeleteQuery(QueryId(name)))
            del self.instances[name]
        else:
            run = self.fresh_run()
            self.taken(name, self.counted[name] + 1, run)
            reset = self.log(number).run(ResetQuery(QueryId(name), run))
            assert reset.instance == self.instances[name]
        self.waiting[name], self.files[name] = [], []
        self.marked[name], self.batches[name] = {}, 0
