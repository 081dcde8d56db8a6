"""Tuning: the inflection point of LMStream by its Eq. 10, and when a plan is probed.

As printed, Eq. 10 cannot leave its start. It regresses the inflection points of past batches on
their throughput and latency, and a history with one inflection point has one answer: the
regression is the constant function, whatever the targets. So at most one batch in fifty is run
with another point, where its deadline leaves room, and what comes out is kept within bounds. Ours
stands beside it: it regresses nothing, but takes the point where the learned costs of both devices
cross (`costs.inflection_bytes`).
"""

from __future__ import annotations

from collections import deque

import msgspec

START_BYTES = 150_000.0
"""LMStream's initial inflection point: 150 KB of a partition."""
HISTORY_MAX = 64
"""The last batches that Eq. 10 is fitted to; the paper keeps all, and names this as a bound."""
BYTES_MIN = 4e3
BYTES_MAX = 256e6
STEP_MAX = 2.0
"""The factor by which a batch may move the inflection point at most."""
PROBE_FACTOR = 2.0
PROBE_EVERY = 50
"""Of so many batches in a row at most one is a probe."""
PROBE_FROM = 4
"""Batches before the first probe: the first ones of a run pay for what is loaded once."""
PAUSE_MAX = 16 * PROBE_EVERY
SURPRISE = 1.3
"""A probe that is off by this factor, or an operation of it, has taught something."""


class TunedBatch(msgspec.Struct, frozen=True):
    """A finished batch, as Eq. 10 sees it: `throughput` is the mean of all batches up to this one
    (Eq. 4), `latency_ms` the largest of a row (Eq. 5)."""

    inflection_bytes: float
    throughput: float
    latency_ms: float


def regress(history: tuple[TunedBatch, ...], throughput: float, latency_ms: float) -> float:
    """Eq. 10: inflection point = b0 + b1 x throughput + b2 x latency, fitted to the history by
    least squares, at the targets. Of several best fits the one with the smallest b1 and b2, each
    in units of its spread."""
    count = len(history)
    point = sum(each.inflection_bytes for each in history) / count
    mean_throughput = sum(each.throughput for each in history) / count
    mean_latency = sum(each.latency_ms for each in history) / count
    rows = [
        (
            each.inflection_bytes - point,
            each.throughput - mean_throughput,
            each.latency_ms - mean_latency,
        )
        for each in history
    ]
    spread_t = sum(t * t for _, t, _ in rows) ** 0.5
    spread_l = sum(d * d for _, _, d in rows) ** 0.5
    by_t = sum(p * t for p, t, _ in rows) / spread_t if spread_t else 0.0
    by_l = sum(p * d for p, _, d in rows) / spread_l if spread_l else 0.0
    both = sum(t * d for _, t, d in rows) / (spread_t * spread_l) if spread_t * spread_l else 0.0
    # In units of their spreads the normal equations are [[1, both], [both, 1]]; where throughput
    # and latency say the same, each gets half of it.
    left = 1.0 - both * both
    if left > 1e-9:
        b_t, b_l = (by_t - both * by_l) / left, (by_l - both * by_t) / left
    else:
        b_t, b_l = by_t / 2, by_l / 2
    return (
        point
        + (b_t * (throughput - mean_throughput) / spread_t if spread_t else 0.0)
        + (b_l * (latency_ms - mean_latency) / spread_l if spread_l else 0.0)
    )


class PaperTuning:
    """LMStream's inflection point over the life of a query, with its targets: the highest
    throughput so far, and as latency the slide of the window, or the mean without one."""

    def __init__(self, start_bytes: float = START_BYTES) -> None:
        self.inflection_bytes = start_bytes
        self._history: deque[TunedBatch] = deque(maxlen=HISTORY_MAX)
        self._bytes = self._ms = 0.0
        self._probes = 0

    def probed_bytes(self) -> float:
        """The inflection point of a batch that is a probe: above and below in turn."""
        self._probes += 1
        factor = PROBE_FACTOR if self._probes % 2 else 1 / PROBE_FACTOR
        return _clamped(self.inflection_bytes * factor)

    def batch_done(
        self,
        used_bytes: float,
        batch_bytes: float,
        processing_ms: float,
        latency_ms: float,
        slide_ms: float | None,
    ) -> None:
        """Take a finished batch in and set the inflection point of the next one; `used_bytes` is
        the point that this one was planned by."""
        self._bytes += batch_bytes
        self._ms += max(processing_ms, 1e-3)
        self._history.append(TunedBatch(used_bytes, self._bytes / self._ms, latency_ms))
        point = self.as_printed(slide_ms)
        least, most = self.inflection_bytes / STEP_MAX, self.inflection_bytes * STEP_MAX
        self.inflection_bytes = _clamped(min(max(point, least), most))

    def as_printed(self, slide_ms: float | None) -> float:
        """The inflection point that Eq. 10 gives, without bounds."""
        history = tuple(self._history)
        throughput = max(each.throughput for each in history)
        mean_ms = sum(each.latency_ms for each in history) / len(history)
        return regress(history, throughput, mean_ms if slide_ms is None else slide_ms)


def _clamped(point: float) -> float:
    return min(max(point, BYTES_MIN), BYTES_MAX)


class Probing:
    """Probes: when a batch may run in another way than the cheapest, to learn what that takes.

    At most one of fifty batches in a row, not among the first, and only if the batch may be as much
    later as the probe is expected to take longer, and by a margin. After a probe that took what was
    expected the next one comes in twice the time, up to 800 batches; after a surprise, or while
    there are ways that were hardly tried or a probe taught nothing, in fifty.
    """

    def __init__(self) -> None:
        self.batches = 0
        self.probes = 0
        self._pause = PROBE_EVERY
        self._probed_at: int | None = None

    def batch_planned(self) -> None:
        self.batches += 1

    def is_due(self, *, has_untried: bool = False) -> bool:
        """Whether enough batches have passed since the last probe."""
        if self._probed_at is None:
            return self.batches > PROBE_FROM
        pause = PROBE_EVERY if has_untried else self._pause
        return self.batches - self._probed_at >= pause

    def probed(self) -> None:
        """Note that the batch is a probe."""
        self.probes += 1
        self._probed_at = self.batches

    def measured(self, *, is_surprise: bool) -> None:
        """A probe has run, and has taught something or not."""
        self._pause = PROBE_EVERY if is_surprise else min(2 * self._pause, PAUSE_MAX)


def is_bearable(longer_ms: float, spare_ms: float | None, margin_ms: float = 0.0) -> bool:
    """Whether a batch can bear to take `longer_ms` more than the cheapest way, and a margin beside
    it. One that is thought to take less must bear the margin, too: it may be wrong. A batch without
    a deadline bears everything."""
    return spare_ms is None or max(longer_ms, 0.0) + margin_ms <= spare_ms
