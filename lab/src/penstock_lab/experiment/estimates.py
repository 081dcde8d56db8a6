"""Estimators held against what batches took, each asked before it learns of a batch. Pure.

The prediction of ours is the one that the cut was made with. The papers' two are asked here about
the same batches in the same order, so that all of them have seen the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.admission.estimate.cost import BatchCost, Estimator
from penstock.admission.estimate.papers import LmStreamEstimator, ZStreamEstimator
from penstock_lab.experiment.visible_rows import Span
from penstock_lab.percentiles import median

OURS = "ours"
LEARNED_MIN = 3
"""Batches that an estimator may learn from before it is held against any."""


def estimates_off(spans: Sequence[Span], cores: int) -> dict[str, float]:
    """By estimator, the median of its absolute error as a share of what a batch took.

    Only batches with rows that all of them have a prediction for; none where a batch was cut
    without one.
    """
    papers: dict[str, Estimator] = {"zstream": ZStreamEstimator(), "lmstream": LmStreamEstimator()}
    off: dict[str, list[float]] = {OURS: [], **{name: [] for name in papers}}
    for span in spans:
        predictions = {
            name: predicted.ms_p50
            for name, estimator in papers.items()
            if (predicted := estimator.predict(span.rows, span.row_bytes, cores)) is not None
        }
        if span.predicted_ms is not None:
            predictions[OURS] = span.predicted_ms
        is_asked = papers["zstream"].batches >= LEARNED_MIN and predictions.keys() == off.keys()
        if span.rows and span.took_ms and is_asked:
            for name, predicted_ms in predictions.items():
                off[name].append(abs(predicted_ms - span.took_ms) / span.took_ms)
        for estimator in papers.values():
            estimator.learn(cost_of(span, cores))
    return {name: share for name, shares in off.items() if (share := median(shares)) is not None}


def cost_of(span: Span, cores: int) -> BatchCost:
    """A batch as the estimators learn of it."""
    return BatchCost(
        span.batch,
        span.took_ms,
        span.rows,
        span.row_bytes,
        span.rows > 0,
        min(span.queued_ms, span.took_ms),
        span.planning_ms,
        span.tasks_ms,
        cores=cores,
    )
