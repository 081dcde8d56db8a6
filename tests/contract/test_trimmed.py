"""Whoever reads the raw log from where entries are gone is told, on both backends."""

from __future__ import annotations

from penstock.errors import BadCall
from penstock.log.backends.local import LocalLog
from penstock.log.operations import (
    AppendRecord,
    DeleteQuery,
    DeleteStream,
    Mark,
    Reclaim,
    ResetQuery,
    TrimQuery,
    TrimStream,
    TrimTag,
)
from penstock.log.reading.subscription import Subscription
from penstock.model.ids import BatchId, Lsn, QueryId, StreamName
from support.log.backends import Backend
from support.log.drafts import draft, files, make, mark, pending, rows, stamp, take

S, Q = StreamName("s"), QueryId("q")


def is_told(log: LocalLog, after: int, *tags: str) -> bool:
    """Whether reading on after a place is refused; what is refused once is refused again."""
    with log.subscribe(tags, Lsn(after)) as reader:
        refusals = [_refusal(reader) for _ in range(2)]
    assert refusals in ([None, None], ["trimmed", "trimmed"])
    return refusals[0] is not None


def _refusal(reader: Subscription) -> str | None:
    try:
        reader.next(0)
    except BadCall as error:
        return error.code
    return None


def marked(log: LocalLog, batch: int, copied: int) -> Lsn:
    """A batch with a file and a row; the checkpoint location has those up to `copied`."""
    (file,) = log.run(files(f"offsets/{batch}", batch=batch))
    entries = log.run(pending(draft(0, batch), by=stamp(batch=batch)))
    made = mark(*entries, batch=batch, files={f"offsets/{batch}": file})
    lsn: Lsn = log.run(Mark(made.marker, BatchId(copied)))
    return lsn


def test_records_that_were_trimmed(backend: Backend, first_log: LocalLog, other: LocalLog) -> None:
    lsns = [first_log.run(AppendRecord(("a",), b"x")) for _ in range(3)]
    first_log.run(TrimTag("a", lsns[1]))
    backend.rebuild(1)
    for log in backend.clients:
        assert is_told(log, lsns[0], "a")
        assert not is_told(log, lsns[1], "a")


def test_rows_that_were_trimmed(backend: Backend, first_log: LocalLog) -> None:
    first_log.run(make())
    first = first_log.run(rows(draft(0, 1))).position
    second = first_log.run(rows(draft(1, 2))).position
    first_log.run(rows(draft(0, 3), draft(1, 4)))
    first_log.run(TrimStream(S, second, 0))
    backend.rebuild(1)
    for log in backend.clients:
        assert is_told(log, 0, "s/s/0")
        assert is_told(log, first, "s/s/1")
        assert is_told(log, first, "s/s/0", "s/s/1")
        assert not is_told(log, first, "s/s/0"), "nothing after it is gone in this substream"
        assert not is_told(log, second, "s/s/0", "s/s/1")
    backend.check()


def test_markers_and_files_that_were_trimmed(backend: Backend, first_log: LocalLog) -> None:
    first_log.run(make())
    first_log.run(take())
    markers = [marked(first_log, batch, batch) for batch in range(3)]
    first_log.run(TrimQuery(Q, BatchId(2)))
    backend.rebuild(1)
    for log in backend.clients:
        assert is_told(log, markers[0], "t/q")
        assert is_told(log, 0, "f/q")
        assert not is_told(log, markers[1], "t/q", "f/q")
    backend.check()


def test_what_a_query_left_when_it_was_reset_or_deleted(
    backend: Backend, first_log: LocalLog
) -> None:
    first_log.run(make())
    first_log.run(take())
    last = marked(first_log, 0, 0)
    first_log.run(ResetQuery(Q, "reset"))
    assert is_told(first_log, 0, "t/q")
    assert is_told(first_log, 0, "f/q")
    assert not is_told(first_log, last, "t/q", "f/q")
    first_log.run(DeleteQuery(Q))
    assert is_told(first_log, last, "t/q"), "the reset itself was an entry"
    assert not is_told(first_log, 0, "s/s/0"), "what it made visible stays"
    backend.check()


def test_a_stream_that_was_deleted(backend: Backend, first_log: LocalLog) -> None:
    first_log.run(make())
    last = first_log.run(rows(draft(0, 1))).position
    first_log.run(DeleteStream(S))
    first_log.run(make())
    first_log.run(rows(draft(0, 2)))
    backend.settle()
    for log in backend.clients:
        assert is_told(log, 0, "s/s/0")
        assert not is_told(log, last, "s/s/0")
        assert not is_told(log, 0, "s/s/1"), "nothing was there"
    backend.check()


def test_what_could_never_be_committed_is_missed_by_nobody(
    backend: Backend, first_log: LocalLog
) -> None:
    first_log.run(make())
    first_log.run(take())
    entries = first_log.run(pending(draft(0, 1)))
    first_log.run(take(run="r2"))
    first_log.run(Reclaim(Q, tuple(entries)))
    with first_log.reading() as view:
        assert list(view.tagged("s/s/0")) == []
    assert not is_told(first_log, 0, "s/s/0")
    backend.check()
