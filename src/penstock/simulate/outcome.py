"""The outcome of a simulated run: latencies of rows, misses, batches and the use of the cores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


@dataclass
class BatchRecord:
    """A batch from its cut to the moment at which it is visible; times in ms since the start."""

    query: int
    cut: int
    cut_at_ms: float
    rows: int
    first: int
    """The first append it took, and the append after its last."""
    end: int
    oldest_at_ms: float
    has_data: bool
    predicted_ms: float | None
    """From cut to visible, as the policy predicted it."""
    left_ms: float | None
    reason: str
    planning_ms: float = 0.0
    queued_ms: float = 0.0
    core_ms: float = 0.0
    longest_task_ms: float = 0.0
    tasks: int = 0
    computed_at_ms: float | None = None
    visible_at_ms: float | None = None

    @property
    def visible_ms(self) -> float | None:
        """From cut to visible; None while it is not."""
        return None if self.visible_at_ms is None else self.visible_at_ms - self.cut_at_ms


@dataclass(frozen=True)
class Latencies:
    """The latencies of rows, each with the number of rows that have it."""

    ms: Numbers
    rows: Numbers

    @classmethod
    def joined(cls, parts: Iterable[Latencies]) -> Latencies:
        every = list(parts)
        if not every:
            return cls(np.empty(0), np.empty(0))
        return cls(
            np.concatenate([part.ms for part in every]),
            np.concatenate([part.rows for part in every]),
        )

    @property
    def mean_ms(self) -> float:
        return float(np.average(self.ms, weights=self.rows)) if self.ms.size else 0.0

    def percentile_ms(self, share: float) -> float:
        """The smallest latency that at least `share` percent of the rows do not exceed."""
        if not self.ms.size:
            return 0.0
        order = np.argsort(self.ms)
        reached = np.cumsum(self.rows[order])
        place = int(np.searchsorted(reached, share / 100 * reached[-1]))
        return float(self.ms[order][min(place, self.ms.size - 1)])

    def curve(self, points: int = 200) -> list[float]:
        """The latencies at evenly spaced shares, from the shortest to the longest."""
        if not self.ms.size:
            return []
        order = np.argsort(self.ms)
        reached = np.cumsum(self.rows[order])
        shares = np.linspace(0, 1, points + 1) * reached[-1]
        places = np.minimum(np.searchsorted(reached, shares), self.ms.size - 1)
        return [float(value) for value in self.ms[order][places]]


@dataclass(frozen=True)
class QueryOutcome:
    """The outcome of one query. Rows that were never visible count as missed, not as latencies."""

    name: str
    deadline_ms: float | None
    latencies: Latencies
    rows: int
    rows_never_visible: int
    rows_missed: int
    batches: int
    batches_without_data: int
    batch_ms: float
    """The sum of cut to visible over batches with data."""
    longest_hold_ms: float
    """The longest time that waiting rows were held back on purpose while nothing else ran."""
    longest_wait_for_cores_ms: float

    @property
    def miss_ratio(self) -> float:
        return self.rows_missed / self.rows if self.rows else 0.0

    @property
    def throughput(self) -> float:
        """Rows per second of batch time."""
        visible = self.rows - self.rows_never_visible
        return visible / (self.batch_ms / 1000) if self.batch_ms else 0.0


@dataclass(frozen=True)
class Outcome:
    """The outcome of a simulated run."""

    queries: tuple[QueryOutcome, ...]
    batches: tuple[BatchRecord, ...]
    busy_share: float
    tasks: int
    ended_at_ms: float
    asked: int

    @property
    def latencies(self) -> Latencies:
        return Latencies.joined(query.latencies for query in self.queries)

    @property
    def miss_ratio(self) -> float:
        rows = sum(query.rows for query in self.queries)
        return sum(query.rows_missed for query in self.queries) / rows if rows else 0.0

    @property
    def throughput(self) -> float:
        """Rows per second of batch time, over all queries."""
        visible = sum(query.rows - query.rows_never_visible for query in self.queries)
        batch_s = sum(query.batch_ms for query in self.queries) / 1000
        return visible / batch_s if batch_s else 0.0

    @property
    def is_everything_visible(self) -> bool:
        return not any(query.rows_never_visible for query in self.queries)

    def prediction_error(self) -> float | None:
        """The median absolute error of predicted cut to visible, as a share of it."""
        errors = [
            abs(batch.predicted_ms - batch.visible_ms) / batch.visible_ms
            for batch in self.batches
            if batch.has_data and batch.predicted_ms is not None and batch.visible_ms
        ]
        return float(np.median(errors)) if errors else None


def latencies_of(
    batches: Sequence[BatchRecord], at_ms: Sequence[float], rows: Sequence[int]
) -> Latencies:
    """The latencies of the rows of one query's visible batches."""
    parts = []
    for batch in batches:
        if batch.visible_at_ms is not None and batch.end > batch.first:
            arrived = np.asarray(at_ms[batch.first : batch.end], np.float64)
            counts = np.asarray(rows[batch.first : batch.end], np.float64)
            parts.append(Latencies(batch.visible_at_ms - arrived, counts))
    return Latencies.joined(parts)
