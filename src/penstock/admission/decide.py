"""The decision on the next batch of a query: its policy asked, within rules that hold for all."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.admission.book import QueryBook
from penstock.admission.decision import Cut, Decision, Wait
from penstock.admission.forecast import weight_of
from penstock.admission.load import Load
from penstock.admission.offer import Offer
from penstock.admission.overload import give_way
from penstock.admission.pace import floor_ms
from penstock.admission.policies import (
    asap,
    auto,
    deadline,
    fixed,
    running_mean,
    slide,
    zstream,
)
from penstock.admission.terms import PolicyName

NOTHING_WAITS_MS = 60_000.0
"""A query for which nothing waits is looked at again after this time, if no data wakes it."""

Policy = Callable[[QueryBook, Offer, Load, float], Decision]

POLICIES: dict[PolicyName, Policy] = {
    PolicyName.ASAP: asap.decide,
    PolicyName.FIXED: fixed.decide,
    PolicyName.ZSTREAM: zstream.decide,
    PolicyName.SLIDE: slide.decide,
    PolicyName.RUNNING_MEAN: running_mean.decide,
    PolicyName.DEADLINE: deadline.decide,
    PolicyName.AUTO: auto.decide,
}
OURS = {PolicyName.DEADLINE, PolicyName.AUTO}
"""The policies that give way; those of the papers are as printed."""


def decide(book: QueryBook, offer: Offer, load: Load, now_ms: float) -> Decision:
    """Cut now or wait, in this order:

    1. nothing waits: wait for data;
    2. the query's policy decides when, and ours how much;
    3. when not everything fits, a less important query gives way;
    4. where data must not be withheld, a wait becomes a cut of everything;
    5. a cut gets the time left, its prediction and its weight, whatever the policy.
    """
    if not offer.has_data:
        return Wait(now_ms + NOTHING_WAITS_MS, "nothing waits")
    decision = POLICIES[book.terms.policy](book, offer, load, now_ms)
    if isinstance(decision, Cut) and book.terms.policy in OURS and not offer.must_cut:
        decision = give_way(book, offer, load, decision, now_ms) or decision
    if isinstance(decision, Wait):
        if not offer.must_cut:
            return decision
        decision = Cut(f"data must not be withheld now ({decision.reason})")
    return _completed(decision, book, offer, load)


def _completed(cut: Cut, book: QueryBook, offer: Offer, load: Load) -> Cut:
    left_ms = cut.left_ms
    if left_ms is None and book.deadline_ms is not None:
        left_ms = book.deadline_ms - offer.oldest_age_ms
    predicted_ms, core_ms, task_ms = cut.predicted_ms, cut.core_ms, cut.longest_task_ms
    if predicted_ms is None or not core_ms:
        predicted = book.ours.predict(offer.rows, offer.bytes, offer.cores)
        if predicted is not None:
            predicted_ms = predicted.ms_p50 if predicted_ms is None else predicted_ms
            core_ms, task_ms = core_ms or predicted.core_ms, task_ms or predicted.longest_task_ms
    floor = floor_ms(book, offer.cores)
    is_below_floor = floor is not None and book.deadline_ms is not None and book.deadline_ms < floor
    reason = cut.reason
    if is_below_floor:
        reason += (
            f"; the deadline of {book.deadline_ms:g} ms is below the floor: the smallest batch "
            f"takes {floor:.0f} ms"
        )
    return msgspec.structs.replace(
        cut,
        reason=reason,
        is_below_floor=is_below_floor,
        left_ms=left_ms,
        predicted_ms=predicted_ms,
        core_ms=core_ms,
        longest_task_ms=task_ms,
        weight=weight_of(book, load),
    )
