"""The deadline that `auto` finds for a query that states none: the shortest that holds."""

from __future__ import annotations

from penstock.fit.quantile import RecentValues

TIGHTEN = 0.97
WIDEN = 1.25
SPARE = 1.1
"""A found deadline leaves this much beside the latency that few batches exceed."""
HIGH = 0.97
BATCHES_MIN = 4
DEADLINE_MS_MAX = 3_600_000.0


class AutoDeadline:
    """A deadline that comes nearer while batches hold it and gives way at once when one does not.

    It never goes below what recent batches took at a high quantile, so it settles there.
    """

    def __init__(self) -> None:
        self.deadline_ms: float | None = None
        self._latencies_ms = RecentValues()

    def measured(self, latency_ms: float) -> None:
        """A batch with data was visible so long after its oldest row arrived."""
        self._latencies_ms.add(latency_ms)
        if len(self._latencies_ms) < BATCHES_MIN:
            return
        shortest_ms = SPARE * self._latencies_ms.quantile(HIGH)
        if self.deadline_ms is None:
            deadline_ms = WIDEN * shortest_ms
        elif latency_ms > self.deadline_ms:
            deadline_ms = max(WIDEN * self.deadline_ms, SPARE * latency_ms)
        else:
            deadline_ms = max(TIGHTEN * self.deadline_ms, min(shortest_ms, self.deadline_ms))
        self.deadline_ms = min(deadline_ms, DEADLINE_MS_MAX)
