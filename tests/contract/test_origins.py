"""How old commits are, and what waits is: the same on every server of both backends."""

from __future__ import annotations

import msgspec

from penstock.log.backends.local import LocalLog
from penstock.log.operations import Mark, Register, TrimStream
from penstock.log.reading.waiting import Oldest, oldest_waiting
from penstock.model.ids import Lsn, StreamName
from support.log.backends import Backend
from support.log.drafts import draft, make, mark, pending, rows, stamp, take


def oldest(log: LocalLog, name: str, after: int = 0) -> Oldest:
    with log.reading() as view:
        stream = view.stream(StreamName(name))
        assert stream is not None
        waiting = oldest_waiting(view, stream, Lsn(after))
        assert waiting is not None
        return waiting


def batch(log: LocalLog, query: str, number: int, reads: dict[str, int], writes: str) -> int:
    """A batch that read its inputs so far, and wrote a row; where it was marked."""
    by = stamp(query, batch=number)
    (entry,) = log.run(pending(draft(0, number), stream=writes, by=by))
    marked = mark(entry, query=query, batch=number, stream=writes).marker
    positions = {name: Lsn(position) for name, position in reads.items()}
    return int(log.run(Mark(msgspec.structs.replace(marked, positions=positions))))


def test_a_chain_is_as_old_as_its_first_arrival_on_every_server(backend: Backend) -> None:
    near, far = backend.clients
    for name in "abc":
        near.run(make(name))
    backend.settle()
    for query, reads in (("q", "a"), ("r", "b")):
        far.run(take(query))
        far.run(Register("query", query, StreamName(reads), Lsn(0)))
    backend.settle()
    first = near.run(rows(draft(0, 1), draft(1, 2), stream="a")).position
    backend.settle()
    arrived_at_ms = oldest(near, "a").arrived_at_ms
    middle = batch(far, "q", 0, {"a": first}, "b")
    backend.settle()
    batch(near, "r", 0, {"b": middle}, "c")
    backend.settle()
    # Two more batches, so that links over several commits are compared too.
    for number in (1, 2):
        last = near.run(rows(draft(0, number), stream="a")).position
        backend.settle()
        batch(far, "q", number, {"a": last}, "b")
        backend.settle()
    for log in backend.clients:
        assert oldest(log, "b").origin_at_ms == arrived_at_ms
        assert oldest(log, "c").origin_at_ms == arrived_at_ms
        assert oldest(log, "b", middle).origin_at_ms >= arrived_at_ms
    backend.check()
    near.run(TrimStream(StreamName("b"), Lsn(middle), 10_000, Lsn(0)))
    backend.check()
    backend.rebuild(1)
    backend.check()
