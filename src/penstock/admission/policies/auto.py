"""Policy `auto`, ours: as early as the cores allow with some spare, never past the deadline.

A batch costs F + b x rows, so cutting every T milliseconds keeps F / T + b x rate busy, and the
shortest T that leaves a spare share of the time is

    T = F / (1 - spare - b x rate)

once for the query's own time (with the batch without data that Spark may put between two), once for
its core-time against the cores that the other queries leave. Without a deadline of its own a query
gets the shortest that its batches hold (`auto_deadline`).
"""

from __future__ import annotations

import math

from penstock.admission.book import QueryBook
from penstock.admission.decision import Decision, Wait
from penstock.admission.estimate.line import Line
from penstock.admission.forecast import forecast, time_growth
from penstock.admission.load import Load
from penstock.admission.offer import Offer
from penstock.admission.policies.deadline import MOMENT_MS, cut_now

SPARE = 0.25
USUAL_MAX = 10.0
"""Without a deadline, no wait is longer than this many times a usual batch."""


def decide(book: QueryBook, offer: Offer, load: Load, now_ms: float) -> Decision:
    """Cut when the cores can take another batch, or when the deadline asks for it."""
    deadline_ms = book.deadline_ms
    left_ms = math.inf if deadline_ms is None else deadline_ms - offer.oldest_age_ms
    deadline_at_ms = None if deadline_ms is None else now_ms + left_ms
    waiting_ms = load.waiting_ms(deadline_at_ms, offer.cores, now_ms)
    expected = forecast(book, offer.rows, offer.bytes, offer.cores, waiting_ms)
    if expected is None or book.last_cut_at_ms is None:
        return cut_now(book, offer, load, left_ms, waiting_ms, "no batch is measured yet")
    interval_ms = shortest_interval_ms(book, offer, load)
    if deadline_ms is None:
        interval_ms = min(interval_ms, USUAL_MAX * max(book.ours.usual_ms(), 1.0))
    earliest_ms = book.last_cut_at_ms + interval_ms
    if now_ms >= earliest_ms:
        return cut_now(book, offer, load, left_ms, waiting_ms, "the cores can take another batch")
    spare_ms = (left_ms - expected.ms_high) / (1.0 + time_growth(book, offer))
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
    """The shortest time between two cuts that leaves the spare; infinite if none does."""
    time_line = book.ours.line_by_rows(offer.cores)
    core_line = book.ours.core_line_by_rows()
    if time_line is None or core_line is None:
        return book.ours.usual_ms() / (1.0 - SPARE)
    own_ms = book.ours.without_data_ms()
    time_line = Line(time_line.fixed + own_ms, time_line.slope)
    cores = offer.cores * (1.0 - SPARE)
    queries = 1 + len(load.others)
    cores_left = max(cores - load.core_share(), cores / queries)
    per_ms = book.arrivals.rows_per_ms
    return max(
        _interval_ms(time_line, 1.0 - SPARE, per_ms), _interval_ms(core_line, cores_left, per_ms)
    )


def _interval_ms(line: Line, share: float, per_ms: float) -> float:
    left = share - line.slope * per_ms
    return line.fixed / left if left > 0.0 else math.inf
