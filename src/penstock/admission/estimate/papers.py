"""Estimators of the papers: the mean throughput of a query, which knows no fixed cost."""

from __future__ import annotations

from collections import deque

from penstock.admission.estimate.cost import BatchCost, Predicted

HISTORY_MAX = 256


class _Throughput:
    """A mean of sizes and times in one unit, as one of the papers takes it."""

    def __init__(self, is_mean_of_ratios: bool) -> None:
        self._is_mean_of_ratios = is_mean_of_ratios
        self._batches: deque[tuple[float, float]] = deque(maxlen=HISTORY_MAX)
        self._mean: float | None = None

    def add(self, size: float, ms: float) -> None:
        self._batches.append((size, max(ms, 0.001)))
        self._mean = None

    def mean(self) -> float | None:
        """Size per millisecond; None without history."""
        if self._mean is None and self._batches:
            if self._is_mean_of_ratios:
                ratios = [size / ms for size, ms in self._batches]
                self._mean = sum(ratios) / len(ratios)
            else:
                self._mean = sum(s for s, _ in self._batches) / sum(t for _, t in self._batches)
        return self._mean


class _MeanThroughput:
    """Time = size / mean throughput, in bytes where sizes are told in bytes, else in rows."""

    is_mean_of_ratios: bool
    counts_waiting: bool

    def __init__(self) -> None:
        self._by_bytes = _Throughput(self.is_mean_of_ratios)
        self._by_rows = _Throughput(self.is_mean_of_ratios)
        self.batches = 0

    def learn(self, cost: BatchCost) -> None:
        if not cost.has_data:
            return
        self.batches += 1
        ms = cost.visible_ms - (0.0 if self.counts_waiting else cost.queued_ms)
        if cost.bytes:
            self._by_bytes.add(cost.bytes, ms)
        if cost.rows:
            self._by_rows.add(cost.rows, ms)

    def predict(self, rows: int | None, size_bytes: int | None, cores: float) -> Predicted | None:
        for size, throughput in ((size_bytes, self._by_bytes), (rows, self._by_rows)):
            mean = throughput.mean()
            if size is not None and mean:
                return Predicted(size / mean, size / mean)
        return None


class ZStreamEstimator(_MeanThroughput):
    """zStream, Eq. 4: batch size over the mean of the throughputs of the finished batches, each
    without its wait in the queue, which Eq. 3 counts. `cores` does not matter here: the ratio of
    allocated to total cores is applied by the policy."""

    is_mean_of_ratios = True
    counts_waiting = False


class LmStreamEstimator(_MeanThroughput):
    """LMStream, Eq. 4 and 6: batch size over all sizes so far divided by all processing times so
    far, over the last batches instead of the whole life of the query."""

    is_mean_of_ratios = False
    counts_waiting = True
