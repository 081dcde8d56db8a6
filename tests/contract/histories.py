"""A machine that makes histories of several clients of a log, beside a model.

The model is plain lists and dictionaries. It does not know places beforehand, only that they grow,
so it holds for a log whose places others take too.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from contract.conftest import Opening
from penstock.errors import PenstockError
from penstock.log.backends.local import LocalLog
from penstock.log.operations import (
    AppendRecord,
    Mark,
    Operation,
    SetAux,
    TrimQuery,
    TrimStream,
    TrimTag,
)
from penstock.log.reading.visible import Range, check_position, entries_in, latest
from penstock.model.ids import BatchId, Lsn, QueryId, StreamName
from support.log.backends import Backend
from support.log.drafts import draft, files, make, mark, pending, rows, stamp, take, values_of

SUBSTREAMS, SUBSTREAMS_MAX = 2, 4
NEVER_AWAY_MS = 10**15

Parts = list[tuple[int, list[int]]]

client = st.integers(0, 1)
stream = st.sampled_from(["s", "u"])
query = st.sampled_from(["q", "r"])
tag = st.sampled_from(["a", "b", "c"])
drafts = st.lists(
    st.tuples(
        st.integers(0, SUBSTREAMS_MAX - 1), st.lists(st.integers(0, 99), min_size=1, max_size=3)
    ),
    min_size=1,
    max_size=3,
)


class Histories(RuleBasedStateMachine):
    opening: Opening

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self.backend: Backend = self._stack.enter_context(type(self).opening(None))
        self.last = 0
        self.shown: dict[str, list[tuple[int, dict[int, list[int]]]]] = {"s": [], "u": []}
        self.trimmed: dict[str, int] = {"s": 0, "u": 0}
        self.sequences: dict[tuple[str, str], int] = {}
        self.widths: dict[str, int] = {"s": SUBSTREAMS, "u": SUBSTREAMS}
        self.consumers: dict[tuple[str, str], int] = {}
        self.instances: dict[str, int] = {}
        self.counted: dict[str, int] = {}  # as instances, of deleted queries too
        self.runs = 0
        self.run_of: dict[str, str] = {}
        self.waiting: dict[str, list[tuple[int, int, str, int, list[int]]]] = {"q": [], "r": []}
        self.batches: dict[str, int] = {"q": 0, "r": 0}
        self.marked: dict[str, dict[int, int]] = {"q": {}, "r": {}}
        self.files: dict[str, list[tuple[int, int, int]]] = {"q": [], "r": []}
        self.tags: dict[str, list[int]] = {"a": [], "b": [], "c": []}
        self.tails: dict[str, int] = {}
        self.seqs: dict[int, int] = {}
        self.aux: dict[int, bytes] = {}
        for name in self.shown:
            self.backend.clients[0].run(make(name, SUBSTREAMS))

    def teardown(self) -> None:
        try:
            self.backend.check()
        finally:
            self._stack.close()

    def log(self, number: int) -> LocalLog:
        return self.backend.clients[number]

    def refused(self, number: int, operation: Operation, code: str) -> None:
        with pytest.raises(PenstockError) as caught:
            self.log(number).run(operation)
        assert caught.value.code == code

    def grown(self, *places: int) -> None:
        """New places are above every place before them, and grow."""
        assert list(places) == sorted(set(places))
        assert places[0] > self.last
        self.last = places[-1]

    @rule(number=client, name=stream, parts=drafts)
    def append(self, number: int, name: str, parts: Parts) -> None:
        parts = self.placed(name, parts)
        answer = self.log(number).run(rows(*(draft(p, *v) for p, v in parts), stream=name))
        self.show(name, answer, parts)

    def placed(self, name: str, parts: Parts) -> Parts:
        """In substreams that the stream has."""
        return [(place % self.widths[name], values) for place, values in parts]

    def show(self, name: str, answer: Any, parts: Parts) -> None:
        assert not answer.duplicate
        self.grown(*answer.entries)
        assert answer.position == answer.entries[-1]
        self.show_at(name, answer.position, parts)

    def show_at(self, name: str, commit: int, parts: Parts) -> None:
        by_substream: dict[int, list[int]] = {}
        for place, values in parts:
            by_substream.setdefault(place, []).extend(values)
        self.shown[name].append((commit, by_substream))

    @rule(
        number=client,
        name=stream,
        producer=st.sampled_from("pq"),
        parts=drafts,
        step=st.integers(-1, 2),
    )
    def append_in_sequence(
        self, number: int, name: str, producer: str, parts: Parts, step: int
    ) -> None:
        parts = self.placed(name, parts)
        last = self.sequences.get((name, producer))
        sequence = max(0, (last if last is not None else 0) + step)
        operation = rows(
            *(draft(p, *v) for p, v in parts), stream=name, producer=producer, sequence=sequence
        )
        answer = self.log(number).run(operation)
        if last is not None and sequence <= last:
            assert answer.duplicate
            return
        self.show(name, answer, parts)
        self.sequences[name, producer] = sequence

    def fresh_run(self) -> str:
        self.runs += 1
        return f"run-{self.runs}"

    def taken(self, name: str, instance: int, run: str) -> None:
        self.instances[name] = self.counted[name] = instance
        self.run_of[name] = run

    @rule(number=client, name=query, again=st.booleans())
    def take_over(self, number: int, name: str, again: bool) -> None:
        known = name in self.instances
        if not (again and known):
            self.taken(name, self.counted.get(name, 0) + 1, self.fresh_run())
        run = self.run_of[name]
        taken = self.log(number).run(take(name, run=run))
        assert taken.instance == self.instances[name]
        newest = max(self.marked[name], default=None)
        assert (taken.marker.batch if taken.marker else None) == newest

    @precondition(lambda self: self.instances)
    @rule(number=client, name=query, to=stream, parts=drafts, zombie=st.booleans())
    def append_pending(self, number: int, name: str, to: str, parts: Parts, zombie: bool) -> None:
        parts = self.placed(to, parts)
        if name not in self.instances:
            return
        instance, batch = self.instances[name], self.batches[name]
        by = stamp(name, instance - zombie, batch)
        operation = pending(*(draft(p, *v) for p, v in parts), stream=to, by=by)
        if zombie:
            self.refused(number, operation, "fenced")
            return
        places = self.log(number).run(operation)
        self.grown(*places)
        for lsn, (place, values) in zip(places, parts, strict=True):
            self.waiting[name].append((lsn, instance, to, place, values))

    @precondition(lambda self: self.instances)
    @rule(number=client, name=query, zombie=st.booleans())
    def append_file(self, number: int, name: str, zombie: bool) -> None:
        if name not in self.instances:
            return
        instance, batch = self.instances[name], self.batches[name]
        operation = files(f"offsets/{batch}", query=name, instance=instance - zombie, batch=batch)
        if zombie:
            self.refused(number, operation, "fenced")
            return
        (lsn,) = self.log(number).run(operation)
        self.grown(lsn)
        self.files[name].append((lsn, instance, batch))

    @precondition(lambda self: self.instances)
    @rule(number=client, name=query, to=stream, zombie=st.booleans())
    def commit_batch(self, number: int, name: str, to: str, zombie: bool) -> None:
        if name not in self.instances:
            return
        operation = self.marking(name, to, zombie=zombie)
        if zombie:
            self.refused(number, operation, "fenced")
            return
        lsn = self.log(number).run(operation)
        self.grown(lsn)
        assert self.log(1 - number).run(operation) == lsn, "the same marker gets the same answer"
        self.mark_at(name, to, lsn)

    def ready(self, name: str, to: str) -> list[tuple[int, int, str, int, list[int]]]:
        """What the next marker of a query names in a stream."""
        now = (self.instances[name], to)
        return [each for each in self.waiting[name] if (each[1], each[2]) == now]

    def marking(self, name: str, to: str, *, zombie: bool = False) -> Mark:
        instance, batch = self.instances[name], self.batches[name]
        named = [lsn for lsn, by, of in self.files[name] if (by, of) == (instance, batch)][-1:]
        operation = mark(
            *(each[0] for each in self.ready(name, to)),
            query=name,
            instance=instance - zombie,
            batch=batch,
            stream=to,
            files={f"offsets/{batch}": lsn for lsn in named},
        )
        return msgspec.structs.replace(operation, copied=BatchId(batch))

    def mark_at(self, name: str, to: str, lsn: int) -> None:
        mine = self.ready(name, to)
        if mine:
            self.show_at(to, lsn, [(place, values) for _, _, _, place, values in mine])
        self.waiting[name] = []
        self.marked[name][self.batches[name]] = lsn
        self.batches[name] += 1

    @rule(number=client, where=st.sets(tag, min_size=1), right=st.booleans(), on=tag)
    def append_record(self, number: int, where: set[str], right: bool, on: str) -> None:
        tail = self.tails.get(on, 0)
        expect = (on, Lsn(tail if right else self.last + 100))
        operation = AppendRecord(tuple(sorted(where)), b"x", expect)
        if not right:
            self.refused(number, operation, "conflict")
            return
        self.recorded(where, self.log(number).run(operation))

    def recorded(self, where: set[str], lsn: int) -> None:
        self.grown(lsn)
        for each in where:
            self.tags[each].append(lsn)
            self.tails[each] = lsn

    @rule(number=client, where=st.sets(tag, min_size=1), seq=st.integers(0, 6))
    def append_record_in_sequence(self, number: int, where: set[str], seq: int) -> None:
        lsn = self.log(number).run(AppendRecord(tuple(where), b"y", producer="p", seq=seq))
        if seq in self.seqs:
            assert lsn == self.seqs[seq]
            return
        self.seqs[seq] = lsn
        self.recorded(where, lsn)

    @precondition(lambda self: any(self.tags.values()))
    @rule(number=client, where=tag, aux=st.binary(max_size=4))
    def set_aux(self, number: int, where: str, aux: bytes) -> None:
        if self.tags[where]:
            lsn = self.tags[where][-1]
            assert self.log(number).run(SetAux(Lsn(lsn), aux)) == lsn
            self.aux[lsn] = aux

    @rule(number=client, name=stream, keep=st.integers(0, 2))
    def trim_stream(self, number: int, name: str, keep: int) -> None:
        ends = [commit for commit, _ in self.shown[name]]
        if len(ends) > keep:
            until = ends[len(ends) - keep - 1]
            operation = TrimStream(StreamName(name), Lsn(until), NEVER_AWAY_MS)
            if any(at < until for (_, of), at in self.consumers.items() if of == name):
                self.refused(number, operation, "still_needed")
                return
            answer = self.log(number).run(operation)
            assert answer.until == until
            self.trimmed[name] = until
            self.shown[name] = self.shown[name][len(ends) - keep :]

    @rule(number=client, name=query)
    def trim_query(self, number: int, name: str) -> None:
        if len(self.marked[name]) > 1:
            newest = max(self.marked[name])
            self.log(number).run(TrimQuery(QueryId(name), BatchId(newest)))
            self.marked[name] = {newest: self.marked[name][newest]}

    @rule(number=client, where=tag, keep=st.integers(0, 2))
    def trim_tag(self, number: int, where: str, keep: int) -> None:
        places = self.tags[where]
        if len(places) > keep:
            until = places[len(places) - keep - 1]
            self.log(number).run(TrimTag(where, Lsn(until)))
            self.tags[where] = places[len(places) - keep :]

    @rule(number=client)
    def purge_and_come_back_without_a_folder(self, number: int) -> None:
        self.backend.purge(number)
        self.backend.rebuild(1 - number)

    @rule(number=client, rebuilt=st.booleans())
    def come_back(self, number: int, rebuilt: bool) -> None:
        (self.backend.rebuild if rebuilt else self.backend.reopen)(number)

    @rule(number=client)
    def read_everything(self, number: int) -> None:
        self.backend.settle()
        with self.log(number).reading() as view:
            for name, shown in self.shown.items():
                record = view.stream(StreamName(name))
                assert record is not None
                start = Lsn(self.trimmed[name])
                if start:
                    with pytest.raises(PenstockError) as caught:
                        check_position(view, record, Lsn(start - 1))
                    assert caught.value.code == "trimmed"
                asked = Range(record, start, latest(view, record))
                entry_values = [values_of(view.payload(lsn)) for _, lsn in entries_in(view, asked)]
                shown_values = [
                    v for _, parts in shown for place in sorted(parts) for v in parts[place]
                ]
                assert [v for values in entry_values for v in values] == shown_values
            for where, lsns in self.tags.items():
                assert list(view.tagged(where)) == lsns
                assert (view.tail(where) or 0) == self.tails.get(where, 0), "trimmed or not"
            whole_after = max(view.trimmed(where) for where in self.tags)
            told_lsns = {lsn for lsns in self.tags.values() for lsn in lsns if lsn > whole_after}
            for lsn, aux in self.aux.items():
                if any(lsn in lsns for lsns in self.tags.values()):
                    assert view.aux(Lsn(lsn)) == aux
            for name, marked in self.marked.items():
                assert list(view.marks(QueryId(name), BatchId(0))) == list(marked.values())
        with self.log(number).subscribe(self.tags, Lsn(whole_after)) as reader:
            assert [entry.head.lsn for entry in reader.next(0)] == sorted(told_lsns)
