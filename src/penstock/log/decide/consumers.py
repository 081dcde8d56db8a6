"""Decide on consumers: who reads a stream, how far each has come, and who is waited for.

A consumer is a group of that name outside Spark, or a query. What a query needs of an input is
everything after the positions in its last marker; before its first one, and for a query that
writes elsewhere, everything after the position that is kept for it as for a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from penstock.errors import BadCall
from penstock.log.decide.need import check_readable, need_stream
from penstock.log.operations import ForgetConsumer, Move, MovePosition, Register
from penstock.log.plan import Plan, Removal
from penstock.log.state import ConsumerRecord, QueryRecord, Reader
from penstock.log.view import View
from penstock.model.ids import Lsn, QueryId, StreamName
from penstock.model.marker import Marker


@dataclass(frozen=True)
class Holder:
    """Someone who needs everything of a stream after `position`; last heard of at `heard_at_ms`."""

    reader: Reader
    name: str
    stream: StreamName
    position: Lsn
    heard_at_ms: int

    def is_away(self, now_ms: int, away_ms: int) -> bool:
        """Not heard of for so long that nothing is held for it any more."""
        return now_ms - self.heard_at_ms > away_ms

    def __str__(self) -> str:
        return f"the {self.reader} {self.name!r} at position {self.position}"


def decide_register(operation: Register, view: View) -> Plan:
    """A new consumer at the position given, or the one that is known with its own."""
    stream = need_stream(view, operation.stream)
    consumer = view.consumer(operation.reader, operation.name, stream.name)
    if consumer is not None:
        return Plan(consumer)
    check_readable(view, stream, operation.position)
    made = ConsumerRecord(
        operation.reader, operation.name, stream.name, operation.position, view.now_ms
    )
    return Plan(made, consumers=(made,))


def decide_move(operation: MovePosition, view: View) -> Plan:
    """Every stream named, or none of them."""
    moved = tuple(_moved(operation, move, view) for move in operation.moves)
    return Plan(moved, consumers=moved)


def _moved(operation: MovePosition, move: Move, view: View) -> ConsumerRecord:
    stream = need_stream(view, move.stream)
    consumer = view.consumer(operation.reader, operation.name, stream.name)
    if consumer is None:
        raise _unknown(operation.reader, operation.name, stream.name)
    position = consumer.position if move.position is None else move.position
    if move.expect is not None and consumer.position not in (move.expect, position):
        raise BadCall(
            f"the {operation.reader} {operation.name!r} is at {consumer.position} in the stream "
            f"{stream.name!r}, and was thought to be at {move.expect}: another consumer with this "
            "name moved it; give each its own name, or let only one of them run",
            code="conflict",
            status=409,
        )
    if move.position is not None:
        check_readable(view, stream, position)
    return ConsumerRecord(consumer.reader, consumer.name, stream.name, position, view.now_ms)


def decide_forget(operation: ForgetConsumer, view: View) -> Plan:
    """The streams of a consumer, in one step; `unknown_consumer` if there are none."""
    streams = [
        each.stream
        for each in view.consumers()
        if (each.reader, each.name) == (operation.reader, operation.name)
        and operation.stream in (None, each.stream)
    ]
    if not streams:
        raise _unknown(operation.reader, operation.name, operation.stream)
    gone = tuple((operation.reader, operation.name, stream) for stream in streams)
    return Plan(tuple(streams), removal=Removal(consumers=gone))


def _unknown(reader: Reader, name: str, stream: StreamName | None) -> BadCall:
    where = "" if stream is None else f" of the stream {stream!r}"
    return BadCall(
        f"there is no {reader} {name!r}{where}; register it first, or check the name",
        code="unknown_consumer",
        status=404,
    )


def holders(view: View, stream: StreamName | None = None) -> Iterator[Holder]:
    """Everyone who needs something of the stream, or of any; those who are away too."""
    kept = {
        (each.reader, each.name, each.stream): each
        for each in view.consumers()
        if stream in (None, each.stream)
    }
    heard: dict[str, int] = {}
    for each in view.consumers():
        if each.reader == "query":
            heard[each.name] = max(heard.get(each.name, 0), each.moved_at_ms)
    for query in view.queries():
        marked_at_ms, positions = _marked(view, query)
        heard_at_ms = max(marked_at_ms, heard.get(query.query, 0))
        for name, position in positions.items():
            if stream in (None, name):
                kept.pop(("query", query.query, StreamName(name)), None)
                yield Holder("query", query.query, StreamName(name), position, heard_at_ms)
    for each in kept.values():
        at_ms = heard[each.name] if each.reader == "query" else each.moved_at_ms
        yield Holder(each.reader, each.name, each.stream, each.position, at_ms)


def _marked(view: View, query: QueryRecord) -> tuple[int, dict[str, Lsn]]:
    """When a query marked last, and how far it had read its inputs then."""
    entry = view.entry(query.marker.lsn) if query.marker is not None else None
    if entry is None:
        return 0, {}
    return entry.head.arrived_at_ms, msgspec.json.decode(entry.payload, type=Marker).positions


def outputs_of(view: View, query: QueryId) -> set[StreamName]:
    """The streams that a query's last marker wrote to."""
    record = view.query(query)
    entry = view.entry(record.marker.lsn) if record is not None and record.marker else None
    if entry is None:
        return set()
    return {write.stream for write in msgspec.json.decode(entry.payload, type=Marker).writes}
