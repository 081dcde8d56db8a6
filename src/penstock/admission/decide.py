"""The decision on the next batch of a query: its policy asked, within rules that hold for all."""

from __future__ import annotations

import msgspec

from penstock.admission.book import QueryBook
from penstock.admission.decision import Cut, Decision, Wait
from penstock.admission.load import Load
from penstock.admission.offer import Offer
from penstock.admission.policies import asap, fixed
from penstock.admission.terms import PolicyName

NOTHING_WAITS_MS = 60_000.0

POLICIES = {
    PolicyName.ASAP: asap.decide,
    PolicyName.FIXED: fixed.decide,
}


def decide(book: QueryBook, offer: Offer, load: Load, now_ms: float) -> Decision:
    """Cut now or wait, in this order:

    1. nothing waits: wait for data;
    2. the query's policy decides;
    3. where data must not be withheld, a wait becomes a cut of everything.
    """
    if not offer.has_data:
        return Wait(now_ms + NOTHING_WAITS_MS, "nothing waits")
    policy = POLICIES.get(book.terms.policy, asap.decide)
    decision = policy(book, offer, load, now_ms)
    if isinstance(decision, Wait) and offer.must_cut:
        decision = Cut(f"data must not be withheld now ({decision.reason})")
    if isinstance(decision, Cut) and decision.left_ms is None and book.deadline_ms is not None:
        left_ms = book.deadline_ms - offer.oldest_age_ms
        decision = msgspec.structs.replace(decision, left_ms=left_ms)
    return decision
