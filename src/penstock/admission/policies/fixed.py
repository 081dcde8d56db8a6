"""Policy `fixed`: a batch every so often, counted from the last cut, as a trigger interval does."""

from __future__ import annotations

from penstock.admission.book import QueryBook
from penstock.admission.decision import Cut, Decision, Wait
from penstock.admission.load import Load
from penstock.admission.offer import Offer


def decide(book: QueryBook, offer: Offer, load: Load, now_ms: float) -> Decision:
    """Cut when the interval has passed since the last cut; the first batch at once."""
    interval_ms = book.terms.interval_ms or 0.0
    if book.last_cut_at_ms is None:
        return Cut("policy fixed: the first batch")
    due_ms = book.last_cut_at_ms + interval_ms
    if now_ms >= due_ms:
        return Cut(f"policy fixed: {interval_ms:g} ms have passed since the last cut")
    return Wait(due_ms, f"policy fixed: the next batch is due in {due_ms - now_ms:.0f} ms")
