"""Policy `auto`, ours: as early as the cores allow with some spare, never past the deadline.

A batch that takes P of the query's time and C of core-time, cut every T milliseconds, keeps P / T
of the one and C / T of the other busy. So the shortest T that leaves a spare share is

    T = max(P / (1 - spare), C / cores)

with the cores that the other queries leave, and in P and C the batches without data that Spark puts
between two. Both are measured, not modelled: a longer T means more rows in a batch, which the next
P and C tell, and T settles where it leaves the spare, or grows up to the deadline if none does.
Without a deadline of its own a query gets the shortest that its batches hold (`auto_deadline`).
"""

from __future__ import annotations

import math

from penstock.admission.book import QueryBook
from penstock.admission.decision import Decision, Wait
from penstock.admission.forecast import forecast, waiting_of
from penstock.admission.load import Load
from penstock.admission.offer import Offer
from penstock.admission.pace import busy_share
from penstock.admission.policies.deadline import MOMENT_MS, cut_now

SPARE = 0.25
USUAL_MAX = 10.0
"""Without a deadline, no wait is longer than this many times a usual batch."""


def decide(book: QueryBook, offer: Offer, load: Load, now_ms: float) -> Decision:
    """Cut when the cores can take another batch, or when the deadline asks for it."""
    deadline_ms = book.deadline_ms
    left_ms = math.inf if deadline_ms is None else deadline_ms - offer.oldest_age_ms
    deadline_at_ms = None if deadline_ms is None else now_ms + left_ms
    waiting_ms = waiting_of(book, offer, load, left_ms, now_ms)
    expected = forecast(book, offer.rows, offer.bytes, offer.cores, waiting_ms)
    if expected is None or book.last_cut_at_ms is None:
        return cut_now(book, offer, load, left_ms, waiting_ms, "no batch is measured yet")
    interval_ms = shortest_interval_ms(book, offer, load)
    if deadline_ms is None:
        interval_ms = min(interval_ms, USUAL_MAX * max(book.ours.usual_ms(), 1.0))
    earliest_ms = book.last_cut_at_ms + interval_ms
    if now_ms >= earliest_ms:
        return cut_now(book, offer, load, left_ms, waiting_ms, "the cores can take another batch")
    spare_ms = (left_ms - expected.ms_high) / (1.0 + busy_share(book, offer.cores))
    if spare_ms <= MOMENT_MS:
        reason = f"{left_ms:.0f} ms are left and {expected.ms_high:.0f} may be needed"
        return cut_now(book, offer, load, left_ms, waiting_ms, reason)
    return Wait(
        min(earliest_ms, now_ms + spare_ms),
        f"the cores can take another batch in {earliest_ms - now_ms:.0f} ms, with some spare",
        expected.alone.core_ms,
        deadline_at_ms,
    )


def shortest_interval_ms(book: QueryBook, offer: Offer, load: Load) -> float:
    """The shortest time between two cuts that leaves the spare, by what batches took lately."""
    cores_left = load.cores_left(offer.cores * (1.0 - SPARE))
    own_ms = book.ours.usual_ms() + book.ours.between_ms()
    return max(own_ms / (1.0 - SPARE), book.ours.usual_core_ms() / cores_left)
