"""Figures of the devices suite from its runs. Pure; a run that does not count enters none."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.experiment.figures import (
    SHARE,
    Figure,
    medians,
    ordered,
    sender_lag,
    verdict_counts,
)
from penstock_lab.experiment.record import Run
from penstock_lab.experiment.search import Searched, highest_rate, tried_of
from penstock_lab.suites.devices.cells import Plan
from penstock_lab.suites.devices.headlines import (
    Value,
    batch_ms,
    device_headlines,
    latency_headlines,
    mean_ms,
    overhead_headline,
    rate_headlines,
)
from penstock_lab.suites.devices.machine_figures import inflection_figures, operation_figures
from penstock_lab.suites.devices.modes import OWN
from penstock_lab.suites.devices.records import (
    InflectionRecord,
    OperationRecord,
    Record,
    SparkRecord,
    on_spark,
)
from penstock_lab.suites.devices.runs import of_search

FIGURES: tuple[tuple[str, str, str, Value], ...] = (
    ("mean_ms", "ms", "an input row, intended send to its batch's marker, in the mean", mean_ms),
    ("batch_ms", "ms", "a batch, its cut to its marker, in the mean", batch_ms),
    ("batch_rows", "rows", "rows of a batch, median", lambda record: record.batch_rows),
    (
        *("gpu_share", SHARE, "batches of which a task ran an operation on the GPU"),
        lambda record: record.gpu_share,
    ),
    (
        *("planning_share", SHARE, "plans made, carried out and learned from, of batch time"),
        lambda record: record.planning_share,
    ),
    (
        *("columnar_share", SHARE, "batches on the columnar path; the others took one of Spark's"),
        lambda record: record.columnar_share,
    ),
)


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Operations, inflection points, latencies, rates, and the headline."""
    spark = on_spark(records)
    compared = on_spark(records, "compared")
    made: list[Figure] = []
    for cell in ordered(record.cell for record in compared):
        for mode in ordered(record.system for record in compared if record.cell == cell):
            mine = [r for r in compared if (r.cell, r.system) == (cell, mode)]
            made += medians(f"{cell.name}.{mode}", mine, FIGURES)
    searched = searches(plan, spark)
    return [
        *operation_figures([r for r in records if isinstance(r, OperationRecord)]),
        *inflection_figures([r for r in records if isinstance(r, InflectionRecord)]),
        *made,
        *(highest_rate(f"{each.cell}.{each.system}.sustained_per_s", each) for each in searched),
        *latency_headlines(compared),
        *rate_headlines(searched),
        *device_headlines(compared),
        *overhead_headline(spark),
        *(sender_lag([record.run for record in compared]) if compared else ()),
        *(verdict_counts([r.run for r in spark], _judged(compared)) if spark else ()),
    ]


def _judged(compared: Sequence[SparkRecord]) -> list[Run]:
    return [record.run for record in compared if not _is_lower_bound(record)]


def _is_lower_bound(record: SparkRecord) -> bool:
    return record.is_bound and record.system not in OWN


def searches(plan: Plan, spark: Sequence[SparkRecord]) -> list[Searched]:
    """Searches and the rates that they tried; one that was cut short may have found too little."""
    if not on_spark(spark, "sustain"):
        return []
    made = []
    for workload in ordered(record.cell.workload for record in spark):
        for mode in plan.search.modes:
            tried = tried_of([record.run for record in of_search(spark, workload, mode)])
            if tried:
                made.append(Searched(workload, mode, tried))
    return made
