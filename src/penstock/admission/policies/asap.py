"""Policy `asap`: whatever there is, at once, as Spark's default trigger does."""

from __future__ import annotations

from penstock.admission.book import QueryBook
from penstock.admission.decision import Cut, Decision
from penstock.admission.load import Load
from penstock.admission.offer import Offer


def decide(book: QueryBook, offer: Offer, load: Load, now_ms: float) -> Decision:
    """Cut all that waits."""
    return Cut("policy asap: all that waits, at once")
