"""Questions about what is visible, answered from the indexes: no question scans the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import msgspec

from penstock.errors import BadCall
from penstock.log.decide.need import check_readable, end_of, need_stream
from penstock.log.reading.commits import last_commit_where
from penstock.log.state import StreamRecord, stream_point
from penstock.log.store import layout
from penstock.log.store.layout import Buffer
from penstock.log.store.view import StoreView
from penstock.model.ids import BatchId, Lsn, QueryId, StreamName, Substream
from penstock.model.marker import Marker
from penstock.model.query_answers import MarkerLine, MarkerList


@dataclass(frozen=True)
class Cursor:
    """The beginning of the next page: the `index`-th entry that commit `commit` makes visible."""

    commit: Lsn
    index: int

    def __str__(self) -> str:
        return f"{self.commit}:{self.index}"


@dataclass(frozen=True)
class Range:
    """Rows asked for: those of commits in `(after, until]`, of one substream or of all."""

    stream: StreamRecord
    after: Lsn
    until: Lsn
    substream: Substream | None = None
    cursor: Cursor | None = None


def earliest(view: StoreView, stream: StreamRecord) -> Lsn:
    """The position from which on the stream is whole."""
    return view.trimmed(stream_point(stream.name))


def latest(view: StoreView, stream: StreamRecord) -> Lsn:
    """The position of the last commit; the earliest one in an empty stream."""
    return end_of(view, stream)


def check_position(view: StoreView, stream: StreamRecord, position: Lsn) -> None:
    """Refuse a position that is not reached yet, one whose rows are trimmed, and one that only a
    log had that this one was restored from."""
    check_readable(view, stream, position)
    for first, last in view.gaps():
        if first <= position <= last:
            raise BadCall(
                f"the position {position} is of a time before this log was restored from a backup "
                f"that ends at {first - 1}: what came after it is gone; go on from {first - 1}",
                code="position_past_end",
            )


def current(view: StoreView, stream: StreamRecord) -> StreamRecord:
    """The stream as it is now; `unknown_stream` if it was deleted since, even if another has its
    name."""
    now = need_stream(view, stream.name)
    if now.id != stream.id:
        raise BadCall(
            f"the stream {stream.name!r} was deleted, and another one has its name now; read that "
            "one from its earliest position",
            code="unknown_stream",
            status=404,
        )
    return now


def position_at(view: StoreView, stream: StreamRecord, time_ms: int) -> Lsn:
    """The position before the first commit that arrived at or after the time."""
    start, end = earliest(view, stream), latest(view, stream)
    last = last_commit_where(
        view, stream, start, end, lambda commit: commit.arrived_at_ms < time_ms
    )
    return last.lsn if last is not None else start


def position_at_time(view: StoreView, stream: StreamName, time_ms: int) -> Lsn:
    """Find what `position_at` does, for a stream by its name."""
    return position_at(view, need_stream(view, stream), time_ms)


def log_end(view: StoreView) -> Lsn:
    """The place of the last entry of the log."""
    return Lsn(view.next_lsn - 1)


def position_keeping(view: StoreView, stream: StreamRecord, bytes_min: int) -> Lsn:
    """The last position after which the stream still has at least so many bytes."""
    start, last = earliest(view, stream), view.last_commit(stream)
    if last is None:
        return start
    most = last.bytes_total - bytes_min
    end = last_commit_where(
        view, stream, start, last.lsn, lambda commit: commit.bytes_total <= most
    )
    return end.lsn if end is not None else start


def _marker_line(view: StoreView, lsn: Lsn, arrived_at_ms: int) -> MarkerLine:
    marker = msgspec.json.decode(view.payload(lsn), type=Marker)
    heads = (view.head(entry) for write in marker.writes for entry in write.entries)
    return MarkerLine(
        lsn,
        marker.batch,
        marker.instance,
        arrived_at_ms,
        marker.positions,
        marker.mode,
        sum(entry.rows for entry in heads if entry is not None),
        _origin_of(view, lsn, marker),
    )


def _origin_of(view: StoreView, lsn: Lsn, marker: Marker) -> int | None:
    """The origin that the commits of a marker keep; None: none of them is left."""
    for name in {write.stream for write in marker.writes}:
        stream = view.stream(name)
        commit = view.commit_at(stream, lsn) if stream is not None else None
        if commit is not None and commit.lsn == lsn:
            return commit.arrived_at_ms if commit.origin_at_ms is None else commit.origin_at_ms
    return None


def marker_list(
    view: StoreView, query: QueryId, first: BatchId, markers_max: int, bytes_max: int
) -> MarkerList:
    """The first markers of a query from batch `first` on, of about `bytes_max` in the log, but one
    at least: what is answered of each is less than the marker, which is read whole."""
    lines: list[MarkerLine] = []
    size = 0
    for lsn in islice(view.marks(query, first), markers_max):
        head = view.head(lsn)
        if head is None:
            raise layout.damaged(lsn, "an index names it and it is not there")
        size += head.payload_bytes
        if size > bytes_max and lines:
            break
        lines.append(_marker_line(view, lsn, head.arrived_at_ms))
    return MarkerList(tuple(lines))


def entries_in(view: StoreView, asked: Range) -> Iterator[tuple[Cursor, Lsn]]:
    """Every entry of the range with its place, in commit order."""
    start = asked.cursor.commit if asked.cursor is not None else Lsn(asked.after + 1)
    skip = asked.cursor.index if asked.cursor is not None else 0
    for commit, lsns in _covered(view, asked, start):
        for index in range(skip, len(lsns)):
            yield Cursor(commit, index), lsns[index]
        skip = 0


def _covered(view: StoreView, asked: Range, start: int) -> Iterator[tuple[Lsn, tuple[Lsn, ...]]]:
    stream = asked.stream
    if asked.substream is not None:
        for lsn, covered in view.covered_between(stream, asked.substream, start, asked.until):
            yield lsn, covered.entries
        return
    for commit in view.commits(stream, start, asked.until):
        lsns: tuple[Lsn, ...] = ()
        for substream in commit.substreams:
            covered_there = view.covered(stream, substream, commit.lsn)
            lsns += covered_there.entries if covered_there is not None else ()
        yield commit.lsn, lsns


class Stored(NamedTuple):
    """A verified payload, and the version of the stream's columns that it is in."""

    version: int
    payload: Buffer


def page(
    view: StoreView, asked: Range, bytes_max: int, entries_max: int
) -> tuple[list[Stored], Cursor | None]:
    """Verified payloads of about `bytes_max` bytes, at least one, and where the rest begins.

    The payloads are views into the store and die with the view's transaction. That nothing asked
    for has been trimmed is checked here, in that transaction: an answer never lacks rows.
    """
    current(view, asked.stream)
    check_position(view, asked.stream, asked.after)
    payloads: list[Stored] = []
    size = 0
    for place, lsn in entries_in(view, asked):
        if payloads and (size >= bytes_max or len(payloads) >= entries_max):
            return payloads, place
        head, payload = view.head_and_payload(lsn)
        if payloads and size + len(payload) > bytes_max:
            return payloads, place
        payloads.append(Stored(head.version, payload))
        size += len(payload)
    return payloads, None
