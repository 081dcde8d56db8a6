"""Needs of decisions: the stream, the query, the position, or the refusal that says so."""

from __future__ import annotations

from penstock.errors import BadCall
from penstock.log.state import QueryRecord, StreamRecord, stream_point
from penstock.log.view import View
from penstock.model.ids import Lsn, QueryId, StreamName


def need_stream(view: View, name: StreamName) -> StreamRecord:
    """The stream, or `unknown_stream`."""
    stream = view.stream(name)
    if stream is None:
        raise BadCall(
            f"there is no stream {name!r}; make it first with PUT /v1/streams/{name}",
            code="unknown_stream",
            status=404,
        )
    return stream


def need_query(view: View, query: QueryId) -> QueryRecord:
    """The query, or `unknown_query`."""
    record = view.query(query)
    if record is None:
        raise BadCall(
            f"there is no query {query!r}; check the id, and that this is the server it ran with",
            code="unknown_query",
            status=404,
        )
    return record


def check_substream(stream: StreamRecord, substream: int) -> None:
    """Refuse a substream the stream does not have."""
    if not 0 <= substream < stream.substreams:
        raise BadCall(
            f"the stream {stream.name!r} has substreams 0 to {stream.substreams - 1}, "
            f"and {substream} is none of them",
            code="substream_out_of_range",
        )


def end_of(view: View, stream: StreamRecord) -> Lsn:
    """The position of the last commit, or the trim point of a stream that has none after it."""
    last = view.last_commit(stream)
    point = view.trimmed(stream_point(stream.name))
    return max(last.lsn, point) if last is not None else point


def check_readable(view: View, stream: StreamRecord, position: Lsn, *, whose: str = "") -> None:
    """Refuse a position that the stream no longer has, or does not have yet."""
    point, end = view.trimmed(stream_point(stream.name)), end_of(view, stream)
    if position < point:
        raise BadCall(
            f"the stream {stream.name!r} is trimmed up to {point}, and rows after {position} were "
            f"asked for{whose}: those up to {point} are gone; start from {point}, the earliest "
            "position, or restore a backup that has them",
            code="trimmed",
            status=410,
        )
    if position > end:
        raise past_end(stream.name, position, end)


def past_end(stream: StreamName, position: Lsn, end: Lsn) -> BadCall:
    return BadCall(
        f"the position {position} is past the end of the stream {stream!r}, which is {end}; ask "
        "for at most that, or check that this is the log the position came from: one restored "
        "from a backup lacks what came after it",
        code="position_past_end",
    )
