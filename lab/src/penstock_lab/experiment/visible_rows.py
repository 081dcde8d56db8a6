"""Input rows by the batch that took them: when they were to be sent, and when it was visible.

A row counts as answered when the marker of its batch is in the log, whether or not the batch wrote
anything for it: a window that closes later has taken the row all the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from penstock.client import Client, MarkerLine
from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.outside_reader import sighting
from penstock_lab.percentiles import percentile
from penstock_lab.workloads.seeded import Floats

MS_IN_S = 1000.0


class BatchRows(msgspec.Struct, frozen=True):
    """The input rows of one committed batch; `sighting.seen_us` is when its marker came."""

    batch: int
    sighting: Sighting
    row_bytes: int = 0


class Span(msgspec.Struct, frozen=True):
    """A batch from its cut to its marker; times in milliseconds since the epoch."""

    batch: int
    cut_ms: float
    visible_ms: float
    rows: int
    row_bytes: int = 0
    planning_ms: float = 0.0
    """From the cut to the first job, as Spark reports it."""
    tasks_ms: float = 0.0
    """How long its tasks ran, summed over them."""
    oldest_ms: float = 0.0
    """The longest latency of its rows."""
    queued_ms: float = 0.0
    """How long its jobs waited for cores."""
    predicted_ms: float | None = None
    """Cut to visible, as predicted at the cut."""

    @property
    def took_ms(self) -> float:
        return max(self.visible_ms - self.cut_ms, 0.0)


def batch_rows(
    client: Client, stream: str, markers: Sequence[MarkerLine], after: int | None = None
) -> list[BatchRows]:
    """The rows that each committed batch took from a stream; batches without any are left out.

    `after` is the position before the first marker; None: the stream was read from its beginning.
    """
    earliest, latest = (client.position(stream, at=at) for at in ("earliest", "latest"))
    before = earliest if after is None else after
    taken = []
    for marker in markers:
        end = max(min(int(marker.positions.get(stream, 0)), latest), before)
        if end > before:
            rows = client.read(stream, before, end)
            seen = sighting(rows, marker.arrived_at_ms * 1000, None)
            taken.append(BatchRows(int(marker.batch), seen, int(rows.nbytes)))
        before = end
    return taken


def joined(streams: Sequence[Sequence[BatchRows]]) -> list[BatchRows]:
    """The rows of several streams by the batch that took them."""
    by_batch: dict[int, list[BatchRows]] = {}
    for taken in streams:
        for rows in taken:
            by_batch.setdefault(rows.batch, []).append(rows)
    return [
        BatchRows(
            batch,
            Sighting(
                parts[0].sighting.seen_us, np.concatenate([p.sighting.sent_us for p in parts])
            ),
            sum(part.row_bytes for part in parts),
        )
        for batch, parts in sorted(by_batch.items())
    ]


def spans(
    batches: Sequence[Timed],
    markers: Sequence[MarkerLine],
    taken: Sequence[BatchRows],
    work: Mapping[int, tuple[float, float]],
) -> list[Span]:
    """Every batch that Spark reported and whose marker is known, in order.

    A batch is cut when its sources have answered: what it waited for rows before is not its time.
    `work` has, by batch, how long its tasks ran and how long its jobs waited for cores.
    """
    arrived_ms = {int(marker.batch): float(marker.arrived_at_ms) for marker in markers}
    by_batch = {rows.batch: rows for rows in taken}
    made = []
    # While it waits for rows Spark reports the number of the batch to come; the last report of a
    # number is that of the batch itself.
    for batch in {batch.number: batch for batch in batches}.values():
        if batch.number in arrived_ms:
            rows, visible_ms = by_batch.get(batch.number), arrived_ms[batch.number]
            tasks_ms, queued_ms = work.get(batch.number, (0.0, 0.0))
            made.append(
                Span(
                    batch.number,
                    batch.began_ms + batch.admission_ms,
                    visible_ms,
                    int(rows.sighting.sent_us.size) if rows else 0,
                    rows.row_bytes if rows else 0,
                    batch.planning_ms,
                    tasks_ms,
                    visible_ms - int(rows.sighting.sent_us.min()) / MS_IN_S if rows else 0.0,
                    queued_ms,
                    batch.predicted_ms,
                )
            )
    return sorted(made, key=lambda span: span.batch)


def within(every: Sequence[Span], from_ms: float, until_ms: float) -> list[Span]:
    """Batches that were cut in that stretch."""
    return [span for span in every if from_ms <= span.cut_ms < until_ms]


def under_way_ms(every: Sequence[Span]) -> float:
    """The time in which at least one of the batches was between its cut and its marker.

    Where commits are asynchronous a batch is cut before the one before it is visible: that time is
    in both batches, and counts once here.
    """
    total_ms, until_ms = 0.0, -math.inf
    for span in sorted(every, key=lambda span: span.cut_ms):
        total_ms += max(span.visible_ms - max(span.cut_ms, until_ms), 0.0)
        until_ms = max(until_ms, span.visible_ms)
    return total_ms


def busy_share(every: Sequence[Span], from_ms: float, until_ms: float) -> float | None:
    """The share of a stretch in which a batch was under way, at most all of it."""
    if until_ms <= from_ms or not every:
        return None
    inside = [
        msgspec.structs.replace(
            span, cut_ms=max(span.cut_ms, from_ms), visible_ms=min(span.visible_ms, until_ms)
        )
        for span in every
        if span.cut_ms < until_ms and span.visible_ms > from_ms
    ]
    return under_way_ms(inside) / (until_ms - from_ms)


def throughput(every: Sequence[Span]) -> float | None:
    """Rows per second of batch time; batches without rows cost theirs. None without any row.

    Batch time is that of every batch: where batches overlap, theirs counts in each of them.
    """
    rows, took_ms = sum(span.rows for span in every), sum(span.took_ms for span in every)
    return rows / took_ms * MS_IN_S if rows and took_ms else None


def batch_maxima_ms(sightings: Sequence[Sighting], sent_after_us: int) -> Floats:
    """The longest latency in each batch, of rows due after that moment: the papers' measure."""
    maxima = [
        (batch.seen_us - int(sent.min())) / MS_IN_S
        for batch in sightings
        if (sent := batch.sent_us[batch.sent_us > sent_after_us]).size
    ]
    return np.array(maxima, np.float64)


def miss_ratio(values_ms: Floats, deadline_s: float) -> float | None:
    """The share of rows that were visible later than their deadline."""
    if not values_ms.size:
        return None
    return float(np.count_nonzero(values_ms > deadline_s * MS_IN_S) / values_ms.size)


class Recovery(msgspec.Struct, frozen=True):
    """The way of a query back under a bound after something had thrown it off."""

    level_ms: float
    """The bound: the deadline, or what batches had before, if that was more."""
    back_s: float
    """From the moment it was over to the last batch above the bound; 0 if none was."""
    is_back: bool
    """False if its last batch was still above it: then it took longer than that."""
    worst_ms: float
    """The longest latency of a row."""


def recovery(
    sightings: Sequence[Sighting], calm_from_us: int, began_us: int, over_us: int, deadline_s: float
) -> Recovery | None:
    """The way back under the deadline; None if no batch was seen after it had begun.

    Up to `began_us` all is calm, and at `over_us` what threw it off is over. Who is above the
    deadline in the calm already, as a fixed trigger as long as the deadline always is, is held
    against the longest batch maximum of the calm.
    """
    maxima = [
        (batch.seen_us, (batch.seen_us - int(batch.sent_us.min())) / MS_IN_S)
        for batch in sightings
        if batch.sent_us.size
    ]
    calm = [ms for seen_us, ms in maxima if calm_from_us <= seen_us < began_us]
    after = [(seen_us, ms) for seen_us, ms in maxima if seen_us >= began_us]
    if not after:
        return None
    level_ms = max([deadline_s * MS_IN_S, *calm])
    above = [seen_us for seen_us, ms in after if ms > level_ms]
    back_us = max(above, default=over_us)
    return Recovery(
        level_ms,
        max(back_us - over_us, 0) / 1e6,
        not above or above[-1] < after[-1][0],
        percentile([ms for _, ms in after], 100) or 0.0,
    )
