"""Figures of the recovery suite from its runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.experiment.figures import Figure, Goal, middle
from penstock_lab.experiment.losses import beside
from penstock_lab.measure.recoveries import (
    DRIVER_COLD,
    DRIVER_WARM,
    EXECUTOR,
    SERVER,
    Recovered,
)
from penstock_lab.suites.recovery.cells import BARE, OURS, SPARK, SPARK_ARCHIVE, WORDS, Plan

VS_SPARK_GOAL = 1.5
TOGETHER = "; both with an archive of classes, all else that is ours on one side"


def figures(plan: Plan, records: Sequence[Recovered]) -> list[Figure]:
    """Times of every system and kill, ours by their short names, and the ratio."""
    counted = [record for record in records if record.is_counted]
    made: list[Figure] = []
    for name in plan.systems:
        for kill in plan.kills:
            words = f"ms to the first new marker after kill -9 of {WORDS[kill]}"
            made += middle(f"{name}.{kill}.ms", "ms", words, times(counted, name, kill))
    for short, kill in (("driver", DRIVER_COLD), ("executor", EXECUTOR), ("server", SERVER)):
        words = f"ours, ms to the first new marker after kill -9 of {WORDS[kill]}"
        made += middle(f"{short}.ms_p50", "ms", words, times(counted, OURS, kill))
    return [
        *made,
        *_ratio("headline.vs_spark", counted, DRIVER_COLD, SPARK, Goal("at least", VS_SPARK_GOAL)),
        *_ratio("headline.vs_spark_archive", counted, DRIVER_COLD, SPARK_ARCHIVE, None, TOGETHER),
        *_ratio("headline.vs_spark_warm", counted, DRIVER_WARM, SPARK),
        *_ratio("headline.archive_gives", counted, DRIVER_COLD, BARE),
        Figure(
            "headline.answers_wrong", "", "runs with a wrong answer",
            float(sum(not record.is_right for record in records)), (), Goal("at most", 0),
        ),
        Figure(
            "headline.runs_failed", "", "runs that failed",
            float(sum(record.error is not None for record in records)), (), Goal("at most", 0),
        ),
    ]  # fmt: skip


def times(records: Sequence[Recovered], system: str, kill: str) -> list[float]:
    return [r.ms[kill] for r in records if r.system == system and kill in r.ms]


def _ratio(
    name: str,
    records: Sequence[Recovered],
    kill: str,
    other: str,
    goal: Goal | None = None,
    difference: str = "",
) -> list[Figure]:
    """The other system's time over ours, within each repeat; they differ in `difference`."""
    by_repeat: dict[int, dict[str, float]] = {}
    for record in records:
        if kill in record.ms:
            by_repeat.setdefault(record.repeat, {})[record.system] = record.ms[kill]
    ratios = [each[other] / each[OURS] for each in by_repeat.values() if {other, OURS} <= {*each}]
    words = f"time of {other} over that of {OURS}, kill -9 of {WORDS[kill]}{difference}; "
    words += beside(other, OURS)
    return middle(name, "x", words, ratios, goal)
