"""Policy `zstream`: Eq. 1 to 4 of zStream, as printed.

    MaxLat = T_buff + T_sched + T_anal                                    (1)
    T_buff = now - arrival of the earliest data                           (2)
    T_sched = sum of T_anal over what is queued                           (3)
    T_anal = size / AvgThPut, under FAIR and RDAS with AvgThPut x allocated / total cores   (4)

Allocated is what the order gives each of the batches that would run at once, this one with them: an
equal part under FAIR, one by weight under RDAS. T_anal of what is queued is Eq. 4, too. A batch is
admitted when MaxLat >= deadline. All of it is a mean, so about half of the batches miss.
"""

from __future__ import annotations

from penstock.admission.book import QueryBook
from penstock.admission.contention import OWN, WantedBatch, open_batches, parts_of_cores
from penstock.admission.decision import Cut, Decision, Wait
from penstock.admission.load import Load
from penstock.admission.offer import Offer


def decide(book: QueryBook, offer: Offer, load: Load, now_ms: float) -> Decision:
    """Cut when the predicted latency of the oldest row reaches the deadline."""
    deadline_ms = book.deadline_ms or 0.0
    predicted = book.zstream.predict(offer.rows, offer.bytes, offer.cores)
    if predicted is None:
        return Cut("policy zstream: no throughput is known before the first batch")
    deadline_at_ms = now_ms + deadline_ms - offer.oldest_age_ms
    own = WantedBatch(predicted.core_ms, deadline_at_ms, book.terms.importance)
    queued = open_batches(load, now_ms)
    parts = parts_of_cores(offer.schedule, {OWN: own, **queued}, now_ms)
    analysis_ms = predicted.ms_p50 / parts[OWN]
    scheduling_ms = sum(
        other.zstream_ms / parts[other.query] for other in load.others if other.query in queued
    )
    latency_ms = offer.oldest_age_ms + scheduling_ms + analysis_ms
    sums = (
        f"policy zstream: buffered {offer.oldest_age_ms:.0f} + queued {scheduling_ms:.0f} + "
        f"analysis {analysis_ms:.0f} ms"
    )
    if latency_ms >= deadline_ms:
        return Cut(
            f"{sums} reach the deadline of {deadline_ms:g} ms",
            predicted_ms=scheduling_ms + analysis_ms,
        )
    return Wait(
        now_ms + deadline_ms - latency_ms,
        f"{sums}, the deadline is {deadline_ms:g} ms",
        deadline_at_ms=deadline_at_ms,
    )
