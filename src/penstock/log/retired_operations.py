"""Operations that logs of earlier versions hold and that change nothing.

They aligned the checkpoints of queries with barriers, for comparison with markers. A stream in
JetStream keeps every operation for ever, so they are decoded and decided on like any other: with
an empty plan. Their stored form must stay readable, and nobody makes new ones.
"""

from __future__ import annotations

import msgspec

from penstock.model.ids import Instance, QueryId, StreamName


class Align(msgspec.Struct, frozen=True):
    """Was: take part in barriers with these outputs."""

    query: QueryId
    instance: Instance
    outputs: tuple[StreamName, ...]


class StartBarrier(msgspec.Struct, frozen=True):
    """Was: begin a barrier among the queries connected with this one."""

    query: QueryId


RetiredOperation = Align | StartBarrier
