"""Micro-batches as Spark reports them, and how their times develop. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from penstock_lab.experiment.phases import ADMISSION, BEFORE_JOB, TRIGGER
from penstock_lab.percentiles import median

QUARTERS = 4
PREDICTED = "penstock.predictedMs"


class Timed(msgspec.Struct, frozen=True):
    """One batch; times in milliseconds, `began_ms` since the epoch."""

    number: int
    began_ms: int
    rows: int
    took_ms: float
    state_ms: float
    """Of all tasks together, what Spark counts as the commit of their state."""
    admission_ms: float = 0.0
    """From its begin until its end in the input was known; a wait for rows is part of it."""
    planning_ms: float = 0.0
    """Spark's own work between that and the first job."""
    predicted_ms: float | None = None
    """From its cut to its end, as predicted at the cut; None where nobody did."""


def timed(progress: Mapping[str, Any]) -> Timed:
    """From a progress as a mapping."""
    # Spark writes a Z, which Python understands from 3.11 on.
    began = datetime.fromisoformat(progress["timestamp"])
    return Timed(
        int(progress["batchId"]),
        round(began.timestamp() * 1000),
        int(progress["numInputRows"]),
        float(progress["durationMs"].get(TRIGGER, 0)),
        float(sum(operator["commitTimeMs"] for operator in progress["stateOperators"])),
        float(progress["durationMs"].get(ADMISSION, 0)),
        float(sum(progress["durationMs"].get(phase, 0) for phase in BEFORE_JOB)),
        _predicted_ms(progress),
    )


def _predicted_ms(progress: Mapping[str, Any]) -> float | None:
    for source in progress.get("sources", ()):
        predicted = (source.get("metrics") or {}).get(PREDICTED)
        if predicted is not None:
            return float(predicted)
    return None


def within(batches: Sequence[Timed], from_ms: float, until_ms: float) -> list[Timed]:
    """Batches with rows that ran in that stretch, be it in part.

    Not only those that began in it: of a slow system no batch may, and it would have no figure.
    """
    return [
        batch
        for batch in batches
        if batch.rows and batch.began_ms < until_ms and batch.began_ms + batch.took_ms > from_ms
    ]


def growth(took_ms: Sequence[float]) -> float | None:
    """Median of the last quarter over that of the first; None if a quarter is empty."""
    size = len(took_ms) // QUARTERS
    if not size:
        return None
    first, last = median(took_ms[:size]), median(took_ms[-size:])
    return None if not first or last is None else last / first
