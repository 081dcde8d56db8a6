"""The forecast of the next batch: its cost, its wait for cores, and the last moment to cut it."""

from __future__ import annotations

import msgspec

from penstock.admission.book import QueryBook
from penstock.admission.estimate.cost import Predicted
from penstock.admission.load import Load

ANSWER_MS = 5.0
"""The way of an answer to Spark and of Spark to its plan; part of every high forecast."""
WAITS_MIN = 5
"""Batches from which on their measured waits say what is usual."""

WEIGHT_MIN = 0.05


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
    waiting_ms: float,
) -> Forecast | None:
    """The forecast for a batch of this size behind a known wait; None without history.

    The known wait is what other queries have cut or plan to; the measured one of past batches
    stands for what nobody knows yet.
    """
    alone = book.ours.predict(rows, size_bytes, cores)
    if alone is None:
        return None
    usual_ms = book.waiting_ms.quantile(0.5) if len(book.waiting_ms) >= WAITS_MIN else waiting_ms
    waiting_high_ms = max(waiting_ms, book.waiting_high_ms())
    return Forecast(
        alone,
        alone.ms_p50 + usual_ms,
        alone.ms_high + waiting_high_ms + ANSWER_MS,
        waiting_high_ms,
    )


def weight_of(book: QueryBook, load: Load) -> float:
    """The query's weight under `rdas`, in (0, 1]: its importance against the highest of the queries
    that have a batch open. The time left counts in the scheduler, where it is known at each offer.
    """
    most = max((other.importance for other in load.others if other.is_open), default=0.0)
    return max(WEIGHT_MIN, min(1.0, book.terms.importance / max(most, book.terms.importance)))
