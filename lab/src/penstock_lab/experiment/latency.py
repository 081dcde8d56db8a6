"""Sightings of an outside reader, and their percentiles, time series, gaps and slope.

All pure. Latency is weighed by record: a batch of a thousand rows is a thousand measurements.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from penstock_lab.percentiles import percentile
from penstock_lab.workloads.seeded import Floats, Ints

SHARES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9, "max": 100.0}
CURVE_POINTS = 101


class Sighting(msgspec.Struct, frozen=True):
    """Rows that became visible at one moment; all times in microseconds since the epoch."""

    seen_us: int
    sent_us: Ints
    """Intended send time of the latest input of each row."""
    closed_us: Ints | None = None
    """Event time at which each row's window could close, if the rows have windows."""


class Latencies(msgspec.Struct, frozen=True):
    """Percentiles in milliseconds over so many rows."""

    rows: int
    p50: float
    p95: float
    p99: float
    p999: float
    max: float


class Second(msgspec.Struct, frozen=True):
    """The rows that became visible in one second of a run."""

    second: int
    rows: int
    p50_ms: float
    p99_ms: float


class EventTime(msgspec.Struct, frozen=True):
    """Event time against the clock: `base_us` is sent at `started_us`."""

    base_us: int
    started_us: int
    speed: float

    def sent_us(self, event_us: Ints) -> Ints:
        """The times at which the rows of an event time were due."""
        since: Ints = ((event_us - self.base_us) / self.speed).astype(np.int64)
        return since + self.started_us


def latencies(values_ms: Floats) -> Latencies | None:
    """Percentiles of latency by row; None without any row."""
    if not values_ms.size:
        return None
    shares_ms = {
        name: round(percentile(values_ms, share) or 0.0, 1) for name, share in SHARES.items()
    }
    return Latencies(rows=int(values_ms.size), **shares_ms)


def row_latencies_ms(sightings: Sequence[Sighting], sent_after_us: int) -> Floats:
    """A latency for each row whose latest input was due after that moment."""
    parts = [
        (sighting.seen_us - sighting.sent_us[sighting.sent_us > sent_after_us]) / 1000.0
        for sighting in sightings
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def past_window_ms(
    sightings: Sequence[Sighting], event_time: EventTime, sent_after_us: int
) -> Floats:
    """For each row with a window: how long after the moment it could close it was seen.

    That moment is when the end of the window plus the watermark's delay was due to be sent.
    """
    parts = []
    for sighting in sightings:
        if sighting.closed_us is not None:
            due_us = event_time.sent_us(sighting.closed_us)
            parts.append((sighting.seen_us - due_us[sighting.sent_us > sent_after_us]) / 1000.0)
    return np.concatenate(parts) if parts else np.empty(0)


def series(sightings: Sequence[Sighting], started_us: int) -> list[Second]:
    """Second by second of the run, by when rows were seen; seconds without rows are left out."""
    by_second: dict[int, list[Floats]] = {}
    for sighting in sightings:
        if sighting.sent_us.size:
            second = (sighting.seen_us - started_us) // 1_000_000
            by_second.setdefault(second, []).append((sighting.seen_us - sighting.sent_us) / 1000.0)
    seconds = []
    for second, parts in sorted(by_second.items()):
        values = np.concatenate(parts)
        p50, p99 = (round(percentile(values, share) or 0.0, 1) for share in (50, 99))
        seconds.append(Second(second, int(values.size), p50, p99))
    return seconds


def curve(values_ms: Floats) -> list[float]:
    """The values at every percent from 0 to 100, to draw how they are spread."""
    if not values_ms.size:
        return []
    shares = np.linspace(0, 100, CURVE_POINTS)
    at: Floats = np.percentile(values_ms, shares, method="inverted_cdf")
    return [round(float(value), 1) for value in at]


def longest_gap_ms(seen_us: Sequence[int], began_us: int, ended_us: int) -> float:
    """The longest time in that stretch in which nothing new was seen."""
    inside = sorted(seen_at_us for seen_at_us in seen_us if began_us < seen_at_us < ended_us)
    edges = np.array([began_us, *inside, max(ended_us, began_us)], np.int64)
    return float(np.diff(edges).max()) / 1000.0


def slope_ms_per_s(sightings: Sequence[Sighting], sent_after_us: int) -> float | None:
    """The rise of latency: milliseconds per second of intended send time; None if unknown.

    The line through the medians of what was seen at each moment, so that a moment with many rows
    does not outweigh the others; fewer than three moments say nothing.
    """
    points = []
    for sighting in sightings:
        sent = sighting.sent_us[sighting.sent_us > sent_after_us]
        if sent.size:
            points.append((float(np.median(sent)) / 1e6, sighting.seen_us / 1e6))
    return _slope(points)


def batch_slope_ms_per_s(
    sightings: Sequence[Sighting], from_us: int, until_us: int
) -> float | None:
    """The same over the oldest row of each batch, where it was due in that stretch.

    A batch that the stretch cuts in two has only its newer or only its older rows in it: medians of
    those would rise over few and long batches where nothing does.
    """
    oldest = [
        (int(batch.sent_us.min()), batch.seen_us) for batch in sightings if batch.sent_us.size
    ]
    return _slope([(sent / 1e6, seen / 1e6) for sent, seen in oldest if from_us <= sent < until_us])


def _slope(points: Sequence[tuple[float, float]]) -> float | None:
    """The rise of the line through moments of sending and of seeing, in seconds."""
    if len(points) < 3:
        return None
    sent_s, seen_s = (np.array(axis) for axis in zip(*points, strict=True))
    sent_s, delay_ms = sent_s - sent_s[0], (seen_s - sent_s) * 1000.0
    spread = sent_s - sent_s.mean()
    width = float(np.dot(spread, spread))
    return float(np.dot(spread, delay_ms - delay_ms.mean())) / width if width > 0 else None
