"""The headline of the devices suite on Spark: ours against the paper's targets. Pure.

A ratio of times is theirs over ours, so that above 1 is ahead, taken within a repeat. A mode that
fell behind its rate is in with the latency it had, which is a lower bound; ours is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from penstock_lab.experiment.figures import SHARE, Figure, Goal, ordered
from penstock_lab.experiment.search import Searched
from penstock_lab.percentiles import median
from penstock_lab.suites.devices.modes import (
    BASELINE,
    LMSTREAM,
    OURS,
    OURS_COLUMNAR,
    PLANNED,
    STATIC,
)
from penstock_lab.suites.devices.records import SparkRecord

Value: TypeAlias = Callable[[SparkRecord], float | None]
LATENCY_GOAL, RATE_BEST_GOAL, RATE_MIN_GOAL = 0.70, 1.74, 0.95
STATIC_GOAL, LMSTREAM_GOAL, OVERHEAD_GOAL = 0.37, 1.0, 0.01
OVERHEAD_WORDS = (
    "plans made and learned from in the server and carried out by the driver's rule, of batch time "
    "(with the look for the sizes of a batch)"
)
IN_WORKERS = (STATIC, LMSTREAM, OURS_COLUMNAR)
"""Modes that differ in devices only, as long as their batches go to workers."""


def mean_ms(record: SparkRecord) -> float | None:
    return record.mean_ms


def batch_ms(record: SparkRecord) -> float | None:
    return record.batch_ms


def ratios_at(
    records: Sequence[SparkRecord], other: str, value: Value, mine: str = OURS
) -> dict[str, tuple[float, ...]]:
    """By cell, another mode's number over that of `mine`, within each repeat."""
    made: dict[str, tuple[float, ...]] = {}
    for cell in ordered(record.cell for record in records):
        here = [r for r in records if r.cell == cell]
        ours = _by_repeat([r for r in here if r.system == mine and r.is_counted], value)
        other_runs = [r for r in here if r.system == other and (r.is_counted or r.is_bound)]
        theirs = _by_repeat(other_runs, value)
        pairs = tuple(theirs[repeat] / ours[repeat] for repeat in theirs if repeat in ours)
        if pairs:
            made[cell.name] = pairs
    return made


def _by_repeat(records: Sequence[SparkRecord], value: Value) -> dict[int, float]:
    return {record.repeat: number for record in records if (number := value(record))}


class Extreme(msgspec.Struct, frozen=True):
    """The least or the greatest of several cells' medians."""

    where: str
    value: float
    repeats: tuple[float, ...]


def extreme(repeats: dict[str, tuple[float, ...]], pick: Callable[..., str]) -> Extreme | None:
    middles = {
        name: value for name, values in repeats.items() if (value := median(values)) is not None
    }
    if not middles:
        return None
    name = pick(middles, key=lambda each: middles[each])
    return Extreme(name, middles[name], repeats[name])


def reduction(ratio: float) -> float:
    """The share by which a time is below another one that is so many times of it."""
    return 1 - 1 / ratio


def _reduced(name: str, words: str, cell: Extreme | None, goal: float | None) -> list[Figure]:
    if cell is None:
        return []
    values = tuple(reduction(ratio) for ratio in cell.repeats)
    sentence = f"{words}: {cell.where}"
    value = reduction(cell.value)
    return [Figure(name, SHARE, sentence, value, values, _at_least(goal))]


def _ratio(name: str, words: str, cell: Extreme | None, goal: float | None) -> list[Figure]:
    if cell is None:
        return []
    sentence = f"{words}: {cell.where}"
    return [Figure(name, "x", sentence, cell.value, cell.repeats, _at_least(goal))]


def _at_least(goal: float | None) -> Goal | None:
    return None if goal is None else Goal("at least", goal)


def latency_headlines(compared: Sequence[SparkRecord]) -> list[Figure]:
    """Mean latency of ours below that of the fixed trigger: the best workload under the paper's
    conditions, and the worst under any."""
    papers = ratios_at([r for r in compared if r.cell.is_papers], BASELINE, mean_ms)
    every = ratios_at(compared, BASELINE, mean_ms)
    words = f"mean latency of an input row, ours below {BASELINE}"
    return [
        *_reduced("headline.latency_reduction", f"{words}, the best workload",
                  extreme(papers, max), LATENCY_GOAL),
        *_reduced("headline.latency_reduction_min", f"{words}, the worst cell",
                  extreme(every, min), 0.0),
    ]  # fmt: skip


def rate_headlines(searched: Sequence[Searched]) -> list[Figure]:
    """The highest rate that ours holds over that of the fixed trigger. Where that one holds none,
    the lowest rate at which it failed stands for it, so that the ratio is a lower bound."""
    by_workload: dict[str, dict[str, Searched]] = {}
    for each in searched:
        by_workload.setdefault(str(each.cell), {})[each.system] = each
    made: dict[str, tuple[float, ...]] = {}
    for workload, modes in by_workload.items():
        if BASELINE in modes and OURS in modes:
            theirs = modes[BASELINE].held or modes[BASELINE].failed
            made[workload] = (modes[OURS].held / theirs,)
    best, least = extreme(made, max), extreme(made, min)
    words = f"the highest rate that holds, ours over {BASELINE}"
    return [
        *_ratio("headline.rate_ratio_best", words, best, RATE_BEST_GOAL),
        *_ratio("headline.rate_ratio_min", words, least, RATE_MIN_GOAL),
    ]


def device_headlines(compared: Sequence[SparkRecord]) -> list[Figure]:
    """Time of a batch against modes that cut batches alike: of ours, on whichever path it takes,
    and of ours held to the columnar path, which then differs in devices only. A run of another mode
    than ours of which no batch went to workers chose no device, and is left out."""
    compared = [r for r in compared if r.columnar_share or r.system == OURS]
    return [
        *_against_planners(compared, OURS, "", STATIC_GOAL, LMSTREAM_GOAL),
        *_against_planners(compared, OURS_COLUMNAR, "_columnar"),
    ]


def _against_planners(
    compared: Sequence[SparkRecord],
    mine: str,
    ending: str,
    static_goal: float | None = None,
    lmstream_goal: float | None = None,
) -> list[Figure]:
    shaken = [record for record in compared if record.cell.traffic == "random"]
    static = extreme(ratios_at(shaken, STATIC, batch_ms, mine), max)
    by_workload: dict[str, list[float]] = {}
    for cell, ratios in ratios_at(compared, LMSTREAM, batch_ms, mine).items():
        by_workload.setdefault(cell.split(".")[0], []).extend(ratios)
    least = extreme({name: tuple(values) for name, values in by_workload.items()}, min)
    shorter = f"time of a batch in random traffic, {mine} below static, the best cell"
    longer = f"time of a batch, lmstream over {mine}, the worst workload"
    return [
        *_reduced(f"headline.vs_static{ending}", shorter, static, static_goal),
        *_ratio(f"headline.vs_lmstream_min{ending}", longer, least, lmstream_goal),
    ]


def overhead_headline(spark: Sequence[SparkRecord]) -> list[Figure]:
    """Planning of the worst run; the sentence says what it does not have."""
    shares = {
        f"{record.cell.name}, {record.system}": record.planning_share
        for record in spark
        if record.system in PLANNED and record.is_counted and record.planning_share is not None
    }
    if not shares:
        return []
    worst = max(shares, key=lambda name: shares[name])
    sentence = f"{OVERHEAD_WORDS}, the worst run: {worst}"
    goal = Goal("at most", OVERHEAD_GOAL)
    return [Figure("headline.overhead", SHARE, sentence, shares[worst], (), goal)]
