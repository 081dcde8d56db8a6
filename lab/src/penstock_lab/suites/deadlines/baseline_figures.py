"""Figures of ours against fixed triggers, the better of the two baselines. Pure.

Ours is compared query by query with the baseline whose median over the repeats is better. A ratio
is taken within a repeat, and of those the median is the figure.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.experiment.figures import Figure, Goal, ordered
from penstock_lab.percentiles import median
from penstock_lab.suites.deadlines.cells import Plan
from penstock_lab.suites.deadlines.modes import BASELINES, OURS
from penstock_lab.suites.deadlines.singles import Single, Value, batch_throughput, mean, p95

P95_GOAL, MEAN_GOAL = 34.0, 48.0


def by_repeat(singles_here: Sequence[Single], mode: str, value: Value) -> dict[int, float]:
    return {
        single.repeat: number
        for single in singles_here
        if single.system == mode and single.is_counted and (number := value(single))
    }


def better_baseline(
    here: Sequence[Single], value: Value, *, is_less_better: bool = True
) -> dict[int, float]:
    """The numbers, by repeat, of the baseline whose median is better."""
    each = [numbers for mode in BASELINES if (numbers := by_repeat(here, mode, value))]
    choose = min if is_less_better else max
    return choose(each, key=lambda numbers: median(list(numbers.values())) or 0.0, default={})


def ratios_to_baseline(
    compared: Sequence[Single], value: Value, *, is_less_better: bool = True
) -> dict[str, tuple[float, ...]]:
    """By query, ours over theirs in each repeat in which both count."""
    made = {}
    for query in ordered(single.cell.query for single in compared):
        here = [single for single in compared if single.cell.query == query]
        ours = by_repeat(here, OURS, value)
        theirs = better_baseline(here, value, is_less_better=is_less_better)
        each = tuple(ours[repeat] / theirs[repeat] for repeat in ours if repeat in theirs)
        if each:
            made[query] = each
    return made


def middle_of(each: tuple[float, ...]) -> float:
    return median(each) or 0.0


def against_baselines(plan: Plan, compared: Sequence[Single]) -> list[Figure]:
    """DB-EDF against the better of SB-FIFO and SB-FAIR: high traffic, the longest deadline."""
    here = [
        single
        for single in compared
        if single.cell.traffic == "high" and single.cell.deadline_s == plan.longest_s
    ]
    at = f"{OURS} against the better of {' and '.join(BASELINES)}, {plan.longest_s:g} s"
    made = []
    for name, value, bound in (("p95", p95, P95_GOAL), ("mean", mean, MEAN_GOAL)):
        ratios = ratios_to_baseline(here, value)
        if ratios:
            query, best = min(ratios.items(), key=lambda item: middle_of(item[1]))
            lower = tuple((1 - ratio) * 100 for ratio in best)
            sentence = f"{name} lower by, {at}, best query: {query}"
            goal = Goal("at least", bound)
            value_here = (1 - middle_of(best)) * 100
            made.append(
                Figure(f"headline.{name}_reduction", "%", sentence, value_here, lower, goal)
            )
    ratios = ratios_to_baseline(here, p95)
    if ratios:
        query, worst = max(ratios.items(), key=lambda item: middle_of(item[1]))
        sentence, goal = f"p95, {at}, ours over theirs, worst query: {query}", Goal("at most", 1.0)
        name = "headline.worst_query_ratio"
        made.append(Figure(name, "x", sentence, middle_of(worst), worst, goal))
    ratios = ratios_to_baseline(here, batch_throughput, is_less_better=False)
    if ratios:
        query, least = min(ratios.items(), key=lambda item: middle_of(item[1]))
        sentence, goal = (
            f"throughput, {at}, ours over theirs, least: {query}",
            Goal("at least", 1.0),
        )
        name = "headline.throughput_ratio"
        made.append(Figure(name, "x", sentence, middle_of(least), least, goal))
    return made
