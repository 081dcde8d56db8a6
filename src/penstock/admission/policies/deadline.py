"""Policy `deadline`, ours: cut at the last moment that holds.

A batch cut at age A of its oldest row is in time if A + waiting for cores + planning, tasks and
release <= deadline, each at a high quantile. Until then waiting costs nothing, and every row that
joins saves a part of a batch's fixed cost. What arrives while we wait makes the batch longer, so
the moment is the solution of

    now + t + age + high(size + rate x t) = deadline

Right after a batch Spark may run another without data, and asks nothing while it does: a moment
that would pass meanwhile has come.
"""

from __future__ import annotations

import math

from penstock.admission.book import QueryBook
from penstock.admission.decision import Cut, Decision, Wait
from penstock.admission.forecast import ANSWER_MS, Forecast, forecast, waiting_of
from penstock.admission.load import Load
from penstock.admission.offer import Offer
from penstock.admission.pace import busy_share, unsustainable_rate
from penstock.admission.size import BatchSize, batch_size, uncounted_size

MOMENT_MS = 1.0
"""A wait shorter than this is none."""


def decide(book: QueryBook, offer: Offer, load: Load, now_ms: float) -> Decision:
    """Cut when no more can be waited for, and as much as the deadline allows."""
    deadline_ms = book.deadline_ms or 0.0
    left_ms = deadline_ms - offer.oldest_age_ms
    waiting_ms = waiting_of(book, offer, load, left_ms, now_ms)
    expected = forecast(book, offer.rows, offer.bytes, offer.cores, waiting_ms)
    if expected is None:
        return cut_now(book, offer, load, left_ms, waiting_ms, "no batch is measured yet")
    spare_ms = left_ms - expected.ms_high
    if spare_ms <= MOMENT_MS:
        reason = f"{left_ms:.0f} ms are left and {expected.ms_high:.0f} may be needed"
        return cut_now(book, offer, load, left_ms, waiting_ms, reason)
    if size_within(book, offer, load, left_ms, waiting_ms).is_full:
        reason = "more waits than a batch may hold, so nothing is gained by waiting"
        return cut_now(book, offer, load, left_ms, waiting_ms, reason)
    wait_ms = spare_ms / (1.0 + busy_share(book, offer.cores))
    if offer.is_first and wait_ms < (unasked_ms := book.unasked_high_ms()):
        reason = (
            f"{left_ms:.0f} ms are left, {expected.ms_high:.0f} may be needed, and a batch without "
            f"data, which Spark may run now, would take {unasked_ms:.0f}"
        )
        return cut_now(book, offer, load, left_ms, waiting_ms, reason)
    return planned(offer, now_ms + wait_ms, now_ms + left_ms, expected, left_ms)


def planned(
    offer: Offer, until_ms: float, deadline_at_ms: float, expected: Forecast, left_ms: float
) -> Wait:
    """The wait for a moment at which the deadline still holds."""
    return Wait(
        until_ms,
        f"{left_ms:.0f} ms are left and {expected.ms_high:.0f} may be needed: more rows may come",
        expected.alone.core_ms,
        deadline_at_ms,
    )


def cut_now(
    book: QueryBook, offer: Offer, load: Load, left_ms: float, waiting_ms: float, reason: str
) -> Cut:
    """The cut of as much as can be in time, with the forecast for just that much."""
    size = BatchSize() if offer.must_cut else size_within(book, offer, load, left_ms, waiting_ms)
    if not size.is_full and not offer.must_cut:
        size = uncounted_size(book, offer)
    rows, size_bytes = part_of(offer, size)
    expected = forecast(book, rows, size_bytes, offer.cores, waiting_ms)
    sentences = (reason, size.reason, unsustainable_rate(book, load, offer.cores))
    return Cut(
        "; ".join(sentence for sentence in sentences if sentence),
        size.rows_max,
        size.bytes_max,
        None if expected is None else expected.ms_p50,
        left_ms if math.isfinite(left_ms) else None,
        core_ms=0.0 if expected is None else expected.alone.core_ms,
        longest_task_ms=0.0 if expected is None else expected.alone.longest_task_ms,
    )


def size_within(
    book: QueryBook, offer: Offer, load: Load, left_ms: float, waiting_ms: float
) -> BatchSize:
    """The size of a batch that is cut with so much time left, waiting for cores taken off."""
    waiting_high_ms = max(waiting_ms, book.waiting_high_ms())
    return batch_size(book, offer, load, left_ms - waiting_high_ms - ANSWER_MS)


def part_of(offer: Offer, size: BatchSize) -> tuple[int | None, int | None]:
    """Rows and bytes of a batch within bounds; the one that is not bounded goes in proportion."""
    rows, size_bytes = offer.rows, offer.bytes
    if size.rows_max is not None and rows:
        share = min(1.0, size.rows_max / rows)
    elif size.bytes_max is not None and size_bytes:
        share = min(1.0, size.bytes_max / size_bytes)
    else:
        return rows, size_bytes
    return (
        None if rows is None else round(rows * share),
        None if size_bytes is None else round(size_bytes * share),
    )
