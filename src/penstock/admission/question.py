"""The question that a query asks before each batch, and its answer."""

from __future__ import annotations

import msgspec

from penstock.admission.cut import NO_LIMITS, BatchEnd, Limits
from penstock.model.ids import Instance, Lsn, QueryId, StreamName


class Input(msgspec.Struct, frozen=True):
    """A stream that a query reads, and the position up to which it has."""

    stream: StreamName
    after: Lsn


class QueryRun(msgspec.Struct, frozen=True):
    """The run of a query that asks. It is refused once another has taken the query over."""

    query: QueryId
    instance: Instance


class Question(msgspec.Struct, frozen=True):
    """The question how far the next batch may read `input`, of a run of a query or of anyone.

    The streams are held for a run, and for nobody else. While neither the input nor one of `others`
    has anything new the answer is held, for `wait_s` at most. Several sources of a query may read
    one stream, each on its own: `source` is the number of the one that asks.
    """

    input: Input
    limits: Limits = NO_LIMITS
    run: QueryRun | None = None
    others: tuple[Input, ...] = ()
    wait_s: float = 0.0
    source: int = 0


class Answer(msgspec.Struct, frozen=True):
    """The end of the batch and why it is there, and what the input was like when that was decided.

    `has_news`: the input or one of the others has something that the query has not read.
    """

    cut: BatchEnd
    latest: Lsn
    substreams: int
    has_news: bool
