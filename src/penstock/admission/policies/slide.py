"""Policy `slide`: the slide of the query's window bounds the latency, Eq. 2 and 6 of LMStream."""

from __future__ import annotations

from penstock.admission.book import QueryBook
from penstock.admission.decision import Decision
from penstock.admission.load import Load
from penstock.admission.offer import Offer
from penstock.admission.policies.bounded import decide_within


def decide(book: QueryBook, offer: Offer, load: Load, now_ms: float) -> Decision:
    """Cut when the estimated latency of the oldest row reaches the slide."""
    return decide_within(book, offer, now_ms, book.terms.slide_ms, "policy slide")
