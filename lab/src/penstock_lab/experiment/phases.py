"""Phases of a micro-batch and their times, from the progress Spark reports for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.errors import TryAgain
from penstock_lab.percentiles import percentile

TRIGGER = "triggerExecution"
ADMISSION = "latestOffset"
BEFORE_JOB = ("walCommit", "getBatch", "queryPlanning")
# In the order they happen.
PHASES = (
    ADMISSION,
    "getOffset",
    "walCommit",
    "getBatch",
    "queryPlanning",
    "addBatch",
    "commitBatch",
    "commitOffsets",
)


class Batch(msgspec.Struct, frozen=True):
    """One micro-batch as Spark reports it, in milliseconds."""

    batch: int
    rows: int
    duration_ms: dict[str, int]


class Timing(msgspec.Struct, frozen=True):
    """Medians over the batches of one run. `phases_ms` need not add up: they are medians."""

    batches: int
    trigger_ms_p50: float
    trigger_ms_p99: float
    phases_ms: dict[str, float]


def batch_of(progress: Mapping[str, Any]) -> Batch:
    """The parts of a progress, as a mapping, that are used here."""
    return Batch(
        int(progress["batchId"]),
        int(progress["numInputRows"]),
        {name: int(value) for name, value in progress["durationMs"].items()},
    )


def timing(batches: Sequence[Batch], rows: int, warm_up: int, count: int) -> Timing:
    """Medians of the first `count` batches of exactly `rows` rows after `warm_up` such batches.

    A trigger that found less to do, or nothing, is reported too and would flatter the median.
    """
    full = [batch for batch in batches if batch.rows == rows]
    measured = full[warm_up : warm_up + count]
    if len(measured) < count:
        raise TryAgain(
            f"{len(full)} batches of {rows} rows were reported, and {warm_up + count} are needed",
            code="too_few_batches",
        )
    triggers = [batch.duration_ms[TRIGGER] for batch in measured]
    names = {name for batch in measured for name in batch.duration_ms} - {TRIGGER}
    ordered = [name for name in PHASES if name in names] + sorted(names - set(PHASES))
    return Timing(
        batches=len(measured),
        trigger_ms_p50=percentile(triggers, 50) or 0.0,
        trigger_ms_p99=percentile(triggers, 99) or 0.0,
        phases_ms={
            name: percentile([b.duration_ms.get(name, 0) for b in measured], 50) or 0.0
            for name in ordered
        },
    )
