"""Rules for when not everything fits: a less important query gives way, up to a bound."""

from __future__ import annotations

from penstock.admission.book import QueryBook
from penstock.admission.decision import Cut, Wait
from penstock.admission.load import Load, OtherQuery
from penstock.admission.offer import Offer

GIVE_WAY_DEADLINES = 1.0
"""A query gives way until its oldest row is late by this many deadlines, and no longer."""
GIVE_WAY_MS = 5_000.0
"""The same for a query without a deadline, by the age of its oldest row."""
LOOK_MS = 50.0


def give_way(book: QueryBook, offer: Offer, load: Load, cut: Cut, now_ms: float) -> Wait | None:
    """The wait for a more important query that would be late, or more so, behind this batch; None
    if this batch may go on. It ends when the other one has finished, and at its bound anyway."""
    bound_ms = _bound_ms(book, offer, now_ms)
    if now_ms >= bound_ms:
        return None
    for other in load.others:
        if other.importance > book.terms.importance and _is_hurt(other, cut, offer, now_ms):
            return Wait(
                min(bound_ms, now_ms + LOOK_MS),
                f"gives way to the more important query {other.query}, for "
                f"{bound_ms - now_ms:.0f} ms more at most",
                cut.core_ms,
                None if cut.left_ms is None else now_ms + cut.left_ms,
                gives_way=True,
            )
    return None


def _bound_ms(book: QueryBook, offer: Offer, now_ms: float) -> float:
    deadline_ms = book.deadline_ms
    if deadline_ms is None:
        return now_ms + GIVE_WAY_MS - offer.oldest_age_ms
    return now_ms + (1.0 + GIVE_WAY_DEADLINES) * deadline_ms - offer.oldest_age_ms


def _is_hurt(other: OtherQuery, cut: Cut, offer: Offer, now_ms: float) -> bool:
    """Whether a query has a batch open or planned that cannot be in time beside this one."""
    left_core_ms = other.core_ms_left(now_ms)
    deadline_at_ms = other.open_deadline_at_ms if left_core_ms > 0.0 else None
    if deadline_at_ms is None and other.is_planned(now_ms):
        left_core_ms, deadline_at_ms = other.planned_core_ms, other.planned_deadline_at_ms
    if deadline_at_ms is None:
        return False
    both_ms = (left_core_ms + cut.core_ms) / max(offer.cores, 1)
    return now_ms + both_ms > deadline_at_ms or (other.is_late and left_core_ms > 0.0)
