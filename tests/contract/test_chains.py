"""Barriers with several servers in front of one log: all of them decide alike."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.log.backends.local import LocalLog
from penstock.log.barriers import readable_end
from penstock.log.chains import Align, StartBarrier
from penstock.log.contract import Mark
from penstock.log.reading.visible import latest
from penstock.log.upkeep import Register
from penstock.model.ids import Instance, Lsn, QueryId, StreamName
from support.log.backends import Backend
from support.log.drafts import draft, make, mark, pending, rows, stamp, take

A, B = QueryId("a"), QueryId("b")
OUTER, MID, OUT = (StreamName(name) for name in ("outer", "mid", "out"))


def joined(log: LocalLog, query: QueryId, given: StreamName, output: StreamName) -> None:
    log.run(take(query))
    log.run(Align(query, Instance(1), (output,)))
    log.run(Register("query", query, given, Lsn(0)))


def marked(log: LocalLog, query: QueryId, output: StreamName, **positions: Lsn) -> Lsn:
    entries = log.run(pending(draft(0, 1), stream=output, by=stamp(query)))
    plain: Mark = mark(*entries, query=query, stream=output)
    told: dict[str, Any] = dict(positions)
    return Lsn(log.run(Mark(msgspec.structs.replace(plain.marker, positions=told))))


def shown(log: LocalLog) -> list[Lsn]:
    with log.reading() as view:
        streams = [view.stream(name) for name in (MID, OUT)]
        return [latest(view, stream) for stream in streams if stream is not None]


def may_read(log: LocalLog, query: QueryId, stream: StreamName) -> Lsn:
    with log.reading() as view:
        member, record = view.member(query), view.stream(stream)
        assert member is not None
        assert record is not None
        return readable_end(view, member, record)


def test_a_barrier_is_the_same_for_all_servers_wherever_its_queries_are(
    backend: Backend, one: LocalLog, other: LocalLog
) -> None:
    for name in (OUTER, MID, OUT):
        one.run(make(name, substreams=1))
    backend.settle()
    joined(one, A, OUTER, MID)
    backend.settle()
    joined(other, B, MID, OUT)
    until = Lsn(other.run(rows(draft(0, 1), stream=OUTER)).position)
    backend.settle()
    # Both ask at once: one begins it, and the other is told that there is one.
    begun = [one.submit(StartBarrier(A)), other.submit(StartBarrier(B))]
    assert sorted(each.result() for each in begun) == [False, True]
    backend.settle()
    other.run(rows(draft(0, 2), stream=OUTER))
    backend.settle()
    assert may_read(one, A, OUTER) == may_read(other, A, OUTER) == until

    mid = marked(one, A, MID, outer=until)
    backend.settle()
    assert shown(one) == shown(other) == [0, 0]
    assert may_read(other, B, MID) == mid
    backend.rebuild(1)
    assert may_read(backend.clients[1], B, MID) == mid

    out = marked(backend.clients[1], B, OUT, mid=mid)
    backend.settle()
    assert shown(backend.clients[0]) == shown(backend.clients[1]) == [mid, out]
    backend.check()
