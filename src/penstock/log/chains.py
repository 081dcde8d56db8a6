"""Chains of aligned queries: what is kept of them, and the operations that make and move them.

Aligned queries that read what others of them write are one *chain*. A *barrier* flows through it:
it begins on the streams that no member writes, passes a member when the member's marker has come
to it on all its inputs, and is complete when it has passed all of them. Only then do readers
outside the chain see what was written up to it.
"""

from __future__ import annotations

import msgspec

from penstock.model.ids import Instance, Lsn, QueryId, StreamName


class Member(msgspec.Struct, frozen=True, array_like=True):
    """An aligned query: the streams it writes, and how far its markers have come on those it reads.

    `awaits`: a barrier is in progress, and has not passed this query. One that joins meanwhile is
    waited for too, unless the barrier is on a stream that it writes already.
    """

    query: QueryId
    outputs: tuple[StreamName, ...]
    positions: dict[StreamName, Lsn]
    awaits: bool = False


class Line(msgspec.Struct, frozen=True, array_like=True):
    """A stream of a chain.

    `place` is where the barrier in progress is on it; None: there is none, or it has not come here.
    `shown` is how far readers outside the chain see it; None: all of it, as no member writes it.
    """

    stream: StreamName
    place: Lsn | None = None
    shown: Lsn | None = None


class Align(msgspec.Struct, frozen=True):
    """Take part in barriers with these outputs; with none, do so no longer."""

    query: QueryId
    instance: Instance
    outputs: tuple[StreamName, ...]


class StartBarrier(msgspec.Struct, frozen=True):
    """Begin a barrier in the chain of a query, unless one is in progress or nothing is new."""

    query: QueryId


Chaining = Align | StartBarrier
