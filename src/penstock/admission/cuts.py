"""Cuts that are open, and the lines that `explain` shows of decisions."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from penstock.admission.decision import Cut
from penstock.admission.estimate.cost import BatchCost
from penstock.model.requests import BatchReport

PREDICTIONS_UNTIL_EXPIRY = 10.0
"""An open cut counts no longer once this many times its prediction has passed."""
EXPIRY_MS_MIN = 10_000.0
EXPIRY_WITHOUT_PREDICTION_MS = 120_000.0


class Batch(msgspec.Struct, frozen=True):
    """The contents of a batch that was cut: sizes as far as known, the age of its oldest row.

    `is_estimate`: a source outside the log is part of it, of which it is only known what the batch
    may have: the driver's report says what was read.
    """

    rows: int | None
    bytes: int | None
    oldest_age_ms: float
    cores: int = 1
    is_estimate: bool = False

    def read(self, report: BatchReport) -> tuple[int | None, int | None]:
        """The rows and bytes that the batch has read, now that it is reported."""
        counted, reported = (self.rows, self.bytes), (report.rows, report.bytes)
        first, second = (reported, counted) if self.is_estimate else (counted, reported)
        rows, size_bytes = (b if a is None else a for a, b in zip(first, second, strict=True))
        return rows, size_bytes


@dataclass
class OpenCut:
    """A cut whose batch is not known to be visible, or whose cost is not told yet.

    `is_queued`: its tasks may still want cores. `ends` are the positions by stream that its marker
    will have; `predictions` are cut to visible, by the name of the estimator.
    """

    number: int
    at_ms: float
    batch: Batch
    decision: Cut
    deadline_ms: float | None
    predictions: dict[str, float]
    ends: dict[str, int] = field(default_factory=dict)
    is_queued: bool = True
    report: BatchReport | None = None
    visible_ms: float | None = None

    @property
    def expires_at_ms(self) -> float:
        """The moment from which on nothing is expected of the batch any more."""
        predicted_ms = self.decision.predicted_ms
        if predicted_ms is None:
            return self.at_ms + EXPIRY_WITHOUT_PREDICTION_MS
        return self.at_ms + max(PREDICTIONS_UNTIL_EXPIRY * predicted_ms, EXPIRY_MS_MIN)

    def cost(self) -> BatchCost | None:
        """The cost of the batch, once both its time and its report are in."""
        report, batch = self.report, self.batch
        if report is None or self.visible_ms is None:
            return None
        rows, size_bytes = batch.read(report)
        return BatchCost(
            cut=self.number,
            visible_ms=self.visible_ms,
            rows=rows,
            bytes=size_bytes,
            has_data=report.has_data,
            queued_ms=min(report.queued_ms, self.visible_ms),
            planning_ms=report.planning_ms,
            core_ms=report.core_ms,
            longest_task_ms=report.longest_task_ms,
            tasks=report.tasks,
            cores=batch.cores,
        )


class DecisionLine(msgspec.Struct, frozen=True):
    """A decision as it is kept for `explain`: what was buffered, what was predicted, and what was
    measured, once it is. Of a wait, `until_ms` is when it ends at the latest."""

    at_ms: float
    is_cut: bool
    reason: str
    rows: int | None
    bytes: int | None
    oldest_age_ms: float
    cut: int | None = None
    predicted_ms: float | None = None
    left_ms: float | None = None
    measured_ms: float | None = None
    until_ms: float | None = None


class Totals(msgspec.Struct):
    """Counts of a query since the server started. `decision_ms` is the time that decisions took,
    with their looks into the log, `planning_ms` that of planning its batches, of carrying plans out
    on the driver and of learning from them, `batch_ms` that of batches from cut to visible.
    `moments_unasked` counts planned moments that passed while Spark asked nothing."""

    batches: int = 0
    batches_late: int = 0
    rows: int = 0
    cuts: int = 0
    cuts_expired: int = 0
    questions: int = 0
    decisions: int = 0
    decision_ms: float = 0.0
    planning_ms: float = 0.0
    batch_ms: float = 0.0
    moments_unasked: int = 0
