"""The forecast of the next batch: its cost, its wait for cores, and the last moment to cut it."""

from __future__ import annotations

import msgspec

from penstock.admission.book import QueryBook
from penstock.admission.estimate.cost import Predicted
from penstock.admission.load import Load
from penstock.admission.offer import Offer

ANSWER_MS = 5.0
"""The way of an answer to Spark and of Spark to its plan; part of every high forecast."""
WAITS_MIN = 5
"""Batches from which on their measured waits say what is usual."""


class Forecast(msgspec.Struct, frozen=True):
    """Cut to visible for a batch that is cut now: in the middle, and as few batches exceed it."""

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


def time_growth(book: QueryBook, offer: Offer) -> float:
    """Milliseconds by which the batch grows with each millisecond of waiting, for what arrives."""
    line = book.ours.line_by_rows(offer.cores)
    return 0.0 if line is None else book.arrivals.rows_per_ms * line.slope


def weight_of(book: QueryBook, load: Load, left_ms: float | None, now_ms: float) -> float:
    """The query's share under `rdas`, in (0, 1]: min-max of the time left among the open batches,
    with a floor, times its importance against the highest."""
    importances = [other.importance for other in load.others if other.is_open]
    most = max([*importances, book.terms.importance])
    lefts = [
        other.open_deadline_at_ms - now_ms
        for other in load.others
        if other.is_open and other.open_deadline_at_ms is not None
    ]
    urgency = 1.0
    if left_ms is not None and lefts:
        least, longest = min([left_ms, *lefts]), max([left_ms, *lefts])
        if longest > least:
            urgency = (longest - left_ms) / (longest - least)
    return max(urgency, WEIGHT_MIN) * max(book.terms.importance / most, WEIGHT_MIN)


WEIGHT_MIN = 0.1
