"""Shares of a batch: how the bound on its size is divided over the query's sources."""

from __future__ import annotations

import math

from penstock.admission.batch_question import Take
from penstock.admission.cut import Limits
from penstock.admission.decision import Cut
from penstock.admission.offer import CutsBy, Offer, Waiting


def share_of(cut: Cut, offer: Offer) -> float:
    """The share of what waits that goes into the batch, the same for every source: joined streams
    advance together."""
    if cut.rows_max is not None and offer.rows:
        return min(1.0, cut.rows_max / offer.rows)
    if cut.bytes_max is not None and offer.bytes:
        return min(1.0, cut.bytes_max / offer.bytes)
    return 1.0


def limits_within(limits: Limits, waiting: Waiting, share: float) -> Limits:
    """A log input's limits for its share; the limits that its user set stay."""
    if share >= 1.0 or not waiting.rows:
        return limits
    rows_max = max(1, math.ceil(share * waiting.rows))
    if limits.rows_max is not None:
        rows_max = min(rows_max, limits.rows_max)
    return Limits(rows_max, limits.bytes_max, limits.until)


def take_within(waiting: Waiting, share: float, rows_max: int | None) -> Take:
    """An outside source's part; one that takes no limit gives everything, and one that takes rows
    and cannot tell how many wait the bound of the batch."""
    if waiting.takes_uncounted_rows:
        return "all" if rows_max is None else rows_max
    counts = {CutsBy.ROWS: waiting.rows, CutsBy.BYTES: waiting.bytes, CutsBy.FILES: waiting.files}
    count = counts.get(waiting.cuts_by)
    if share >= 1.0 or not count:
        return "all"
    return max(1, math.ceil(share * count))


def taken(waiting: Waiting, take: Take) -> tuple[int | None, int | None]:
    """Rows and bytes that an outside source gives for a take, in proportion where it counts in
    something else."""
    if take == "all":
        return waiting.rows, waiting.bytes
    counts = {CutsBy.ROWS: waiting.rows, CutsBy.BYTES: waiting.bytes, CutsBy.FILES: waiting.files}
    count = counts.get(waiting.cuts_by)
    share = 0.0 if take == "nothing" or not count else min(1.0, take / count)
    return (
        None if waiting.rows is None else round(share * waiting.rows),
        None if waiting.bytes is None else round(share * waiting.bytes),
    )
