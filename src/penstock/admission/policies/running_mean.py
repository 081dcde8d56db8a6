"""Policy `running-mean`: past batches bound the latency, Eq. 3 and 6 of LMStream, for tumbling
windows.

As printed the sum over the i batches before batch i is divided by i - 1, so there is no bound for
the first two batches, and the third may take as long as both together.
"""

from __future__ import annotations

from penstock.admission.book import QueryBook
from penstock.admission.decision import Decision
from penstock.admission.load import Load
from penstock.admission.offer import Offer
from penstock.admission.policies.bounded import decide_within


def decide(book: QueryBook, offer: Offer, load: Load, now_ms: float) -> Decision:
    """Cut when the estimated latency of the oldest row reaches the running mean of the longest
    latencies of past batches."""
    past_ms = book.latencies_ms
    mean_ms = sum(past_ms) / (len(past_ms) - 1) if len(past_ms) > 1 else None
    return decide_within(book, offer, now_ms, mean_ms, "policy running-mean")
