"""The estimate that `slide` and `running-mean` share: Eq. 4 to 6 of LMStream, as printed.

    AvgThPut = sum of the sizes so far / sum of the processing times so far      (4)
    MaxLat = longest buffering + processing                                     (5)
    EstMaxLat = longest buffering + size / AvgThPut                             (6)

A batch is admitted when EstMaxLat reaches the bound. History is bounded, which the paper's is not.
"""

from __future__ import annotations

from penstock.admission.book import QueryBook
from penstock.admission.decision import Cut, Decision, Wait
from penstock.admission.offer import Offer


def decide_within(
    book: QueryBook, offer: Offer, now_ms: float, bound_ms: float | None, bound: str
) -> Decision:
    """Cut when the estimated latency of the oldest row reaches `bound_ms`; None: there is no bound
    to compare with yet."""
    predicted = book.lmstream.predict(offer.rows, offer.bytes, offer.cores)
    if predicted is None or bound_ms is None:
        return Cut(f"{bound}: not enough batches to compare with yet")
    latency_ms = offer.oldest_age_ms + predicted.ms_p50
    sums = f"{bound}: buffered {offer.oldest_age_ms:.0f} + processing {predicted.ms_p50:.0f} ms"
    if latency_ms >= bound_ms:
        return Cut(f"{sums} reach {bound_ms:.0f} ms", predicted_ms=predicted.ms_p50)
    return Wait(now_ms + bound_ms - latency_ms, f"{sums}, the bound is {bound_ms:.0f} ms")
