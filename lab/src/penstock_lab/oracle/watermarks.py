"""Event time at the start of every batch, computed as Spark does.

Spark keeps, for each watermark of a query, the highest event time seen less the delay, and takes
the least of them; it never goes back. A batch closes what ended at or before the watermark at its
start, and drops rows as late by the watermark at the start of the batch before it. What each input
had seen is not kept across a restart: until every input has had rows again, the watermark stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock_lab.queries import Watermark


class Progress(NamedTuple):
    """One committed batch; both watermarks are microseconds since the epoch, 0 for none yet."""

    batch: int
    lsn: int
    watermark_us: int
    late_us: int


class Marked(NamedTuple):
    """A marker's batch, position and instance, which is all that matters here."""

    batch: int
    lsn: int
    instance: int


def progress(
    marked: Sequence[Marked],
    watermarks: Sequence[Watermark],
    newest_us: Sequence[Mapping[int, int]],
) -> list[Progress]:
    """The watermarks of every batch, in order.

    `newest_us` has, for each of `watermarks`, the latest event time among the rows of a batch that
    reach it; a batch without such rows is not in it.
    """
    batches: list[Progress] = []
    seen_ms: dict[int, int] = {}
    instance: int | None = None
    now_ms = late_ms = 0
    for marker in marked:
        if marker.instance != instance:
            seen_ms, instance = {}, marker.instance
        batches.append(Progress(marker.batch, marker.lsn, now_ms * 1_000, late_ms * 1_000))
        late_ms = now_ms
        for number, (watermark, newest) in enumerate(zip(watermarks, newest_us, strict=True)):
            at_us = newest.get(marker.batch)
            reached_ms = 0 if at_us is None else at_us // 1_000 - watermark.delay_ms
            seen_ms[number] = max(seen_ms.get(number, 0), reached_ms)
        now_ms = max(now_ms, min(seen_ms.values(), default=0))
    return batches
