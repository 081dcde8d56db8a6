"""Decide on the age of a batch: when the oldest row that it read first arrived in the log.

A commit that rests on rows of other streams keeps that time, so that at the end of a chain of
queries the first arrival is known. It is told from the state and the marker alone, and so is the
same on every server.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from penstock.log.decide.need import end_of
from penstock.log.rules import ORIGINS_KEPT
from penstock.log.state import QueryRecord, StreamRecord
from penstock.log.view import View
from penstock.model.ids import Lsn, StreamName
from penstock.model.marker import Marker


class Oldest(NamedTuple):
    """The oldest of some commits: its arrival, and the first arrival of what any of them was made
    from, which is never later."""

    arrived_at_ms: int
    origin_at_ms: int


class _Positions(msgspec.Struct):
    """A marker read for its positions alone: all else is passed over where it lies."""

    positions: dict[str, Lsn] = {}


_decode_positions = msgspec.json.Decoder(_Positions).decode


def oldest_between(view: View, stream: StreamRecord, after: Lsn, until: Lsn) -> Oldest | None:
    """The oldest of the commits in `(after, until]`; None: there are none.

    Arrivals never go back, so the first of them arrived first; only those older than their own
    arrival have to be searched for the oldest origin, and the index of these is not scanned.
    """
    first = next(iter(view.commits(stream, after + 1, until)), None)
    if first is None:
        return None
    origin_at_ms = view.oldest_origin(stream, after, until)
    if origin_at_ms is None:
        return Oldest(first.arrived_at_ms, first.arrived_at_ms)
    return Oldest(first.arrived_at_ms, min(first.arrived_at_ms, origin_at_ms))


def origin_of_marker(marker: Marker, record: QueryRecord, view: View) -> int | None:
    """The first arrival of the oldest row that the batch read; None: it read none of the log.

    It read what lies between the positions of the query's last marker and those of this one.
    """
    if view.rules.version < ORIGINS_KEPT:
        return None
    before = _positions_before(record, view)
    origins = []
    for name, position in marker.positions.items():
        stream = view.stream(StreamName(name))
        if stream is None:
            continue
        end = _in_log(view, stream, position)
        start = before.get(name)
        if start is None:
            start = _first_position(view, record, stream, end)
        oldest = oldest_between(view, stream, _in_log(view, stream, start), end)
        if oldest is not None:
            origins.append(oldest.origin_at_ms)
    return min(origins, default=None)


def _in_log(view: View, stream: StreamRecord, position: int) -> Lsn:
    """The position, or the nearest that the log can have: a marker may say any number."""
    return Lsn(max(0, min(position, end_of(view, stream))))


def _positions_before(record: QueryRecord, view: View) -> dict[str, Lsn]:
    entry = view.entry(record.marker.lsn) if record.marker is not None else None
    return {} if entry is None else _decode_positions(entry.payload).positions


def _first_position(view: View, record: QueryRecord, stream: StreamRecord, position: Lsn) -> Lsn:
    """Where a query began that has marked nothing of the stream yet: the position kept for it
    since its first question; if there is none, only the last commit it read counts."""
    consumer = view.consumer("query", record.query, stream.name)
    if consumer is not None and consumer.position < position:
        return consumer.position
    last = view.commit_at(stream, position)
    return Lsn(last.lsn - 1) if last is not None else position
