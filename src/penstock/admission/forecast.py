"""The forecast of the next batch: its cost, its wait for cores, and the last moment to cut it."""

from __future__ import annotations

import math

import msgspec

from penstock.admission.book import QueryBook
from penstock.admission.contention import WEIGHT_MIN, WantedBatch, waiting_ms
from penstock.admission.estimate.cost import Predicted
from penstock.admission.load import Load
from penstock.admission.offer import Offer

ANSWER_MS = 5.0
"""The way of an answer to Spark and of Spark to its plan; part of every high forecast."""
WAITS_MIN = 5
"""Batches from which on their measured waits say what is usual."""


class Forecast(msgspec.Struct, frozen=True):
    """Cut to visible for a batch that is cut now: the median, and a time few batches exceed."""

    alone: Predicted
    ms_p50: float
    ms_high: float
    waiting_high_ms: float


def forecast(
    book: QueryBook,
    rows: int | None,
    size_bytes: int | None,
    cores: int,
    behind_ms: float,
) -> Forecast | None:
    """The forecast for a batch of this size `behind_ms` of other queries' work; None without
    history.

    The known wait is what other queries have cut or plan to; the measured one of past batches
    stands for what nobody knows yet.
    """
    alone = book.ours.predict(rows, size_bytes, cores)
    if alone is None:
        return None
    usual_ms = book.waiting_ms.quantile(0.5) if len(book.waiting_ms) >= WAITS_MIN else behind_ms
    waiting_high_ms = max(behind_ms, book.waiting_high_ms())
    return Forecast(
        alone,
        alone.ms_p50 + usual_ms,
        alone.ms_high + waiting_high_ms + ANSWER_MS,
        waiting_high_ms,
    )


def waiting_of(book: QueryBook, offer: Offer, load: Load, left_ms: float, now_ms: float) -> float:
    """The time that other queries cost a batch of what is offered, or of so much of it as can be
    done in the time that is left."""
    predicted = book.ours.predict(offer.rows, offer.bytes, offer.cores)
    core_ms = 0.0 if predicted is None else predicted.core_ms
    if left_ms > 0.0:
        core_ms = min(core_ms, left_ms * offer.cores)
    due_at_ms = now_ms + left_ms if math.isfinite(left_ms) else None
    own = WantedBatch(core_ms, due_at_ms, book.terms.importance)
    return waiting_ms(own, load, offer.schedule, offer.cores, now_ms)


def weight_of(book: QueryBook, load: Load) -> float:
    """The query's weight under `rdas`, in (0, 1]: its importance against the highest of the queries
    that have a batch open. The time left counts in the scheduler, where it is known at each offer.
    """
    most = max((other.importance for other in load.others if other.is_open), default=0.0)
    return max(WEIGHT_MIN, min(1.0, book.terms.importance / max(most, book.terms.importance)))
