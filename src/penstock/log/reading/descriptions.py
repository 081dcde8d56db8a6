"""Streams, queries and consumers described: what a user is told of each, from one state."""

from __future__ import annotations

from collections.abc import Callable

from penstock.log.decide.consumers import Holder, holders
from penstock.log.decide.need import need_query, need_stream
from penstock.log.reading.schemas import StreamSchemas
from penstock.log.reading.visible import earliest, latest
from penstock.log.state import Commit, QueryRecord, StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.answers import (
    ConsumerDescription,
    ConsumerList,
    StreamDescription,
    StreamList,
)
from penstock.model.ids import Lsn, QueryId, StreamName
from penstock.model.query_answers import QueryDescription, QueryList
from penstock.model.schema import to_base64, to_ddl


def stream_list(view: StoreView, schemas: StreamSchemas) -> StreamList:
    """Every stream of the log."""
    return StreamList(tuple(describe_stream(view, schemas, each) for each in view.streams()))


def describe_stream(
    view: StoreView, schemas: StreamSchemas, stream: StreamRecord | StreamName
) -> StreamDescription:
    """A stream, by its record as it was made or altered, or by its name."""
    record = need_stream(view, stream) if isinstance(stream, str) else stream
    schema = schemas.current(record)
    start, end = earliest(view, record), latest(view, record)
    base, last = view.commit_at(record, start), view.commit_at(record, end)
    return StreamDescription(
        name=record.name,
        ddl=to_ddl(schema),
        schema=to_base64(schema),
        substreams=record.substreams,
        key=record.key,
        earliest=start,
        latest=end,
        rows=_rows_total(last) - _rows_total(base),
        bytes=(last.bytes_total if last else 0) - (base.bytes_total if base else 0),
        version=len(record.versions),
        first_columns=len(schemas.first(record)),
        age_ms_max=record.retention.age_ms_max,
        bytes_max=record.retention.bytes_max,
        id=record.id,
        revision=record.revision,
    )


def _rows_total(commit: Commit | None) -> int:
    return commit.rows_total if commit is not None else 0


def query_list(view: StoreView) -> QueryList:
    """Every query that the log knows."""
    return QueryList(tuple(describe_query(view, each) for each in view.queries()))


def describe_query(view: StoreView, query: QueryRecord | QueryId) -> QueryDescription:
    """A query, by its record or its id."""
    record = need_query(view, query) if isinstance(query, str) else query
    return QueryDescription(
        record.query,
        record.name,
        record.instance,
        record.run,
        record.marker,
        record.copied,
        record.trimmed,
        record.emptying,
    )


def consumer_list(
    view: StoreView, now_ms: int, away_ms_max: int, *, only_away: bool
) -> ConsumerList:
    """Groups and queries by name, or only those that stay away, the longest away first."""
    consumers = [_describe_consumer(view, holder, now_ms, away_ms_max) for holder in holders(view)]
    consumers.sort(key=lambda consumer: (consumer.reader, consumer.name, consumer.stream))
    if only_away:
        consumers = [consumer for consumer in consumers if consumer.is_away]
        consumers.sort(key=lambda consumer: consumer.heard_at_ms)
    return ConsumerList(tuple(consumers))


def _describe_consumer(
    view: StoreView, holder: Holder, now_ms: int, away_ms_max: int
) -> ConsumerDescription:
    stream = view.stream(holder.stream)
    rows_behind = 0
    if stream is not None:
        last = view.commit_at(stream, latest(view, stream))
        base = view.commit_at(stream, holder.position)
        rows_behind = _rows_total(last) - _rows_total(base)
    is_away = holder.is_away(now_ms, away_ms_max)
    return ConsumerDescription(
        reader=holder.reader,
        name=holder.name,
        stream=holder.stream,
        position=holder.position,
        rows_behind=rows_behind,
        heard_at_ms=holder.heard_at_ms,
        is_away=is_away,
        away_since_ms=holder.heard_at_ms + away_ms_max if is_away else None,
        is_trimmed=stream is None or holder.position < earliest(view, stream),
    )


def earliest_position(view: StoreView, stream: StreamName) -> Lsn:
    """The position from which on a stream is whole."""
    return earliest(view, need_stream(view, stream))


def latest_position(view: StoreView, stream: StreamName) -> Lsn:
    """The position of a stream's last commit."""
    return latest(view, need_stream(view, stream))


NAMED_POSITIONS: dict[str, Callable[[StoreView, StreamName], Lsn]] = {
    "earliest": earliest_position,
    "latest": latest_position,
}
"""The positions that a user may give by name."""
