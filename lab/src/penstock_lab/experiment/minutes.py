"""Minutes that queries of one generator take on several systems, about, for a plan's estimate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock_lab.experiment.plan import LOCAL, Plan, WarmUp

# Seconds on two quiet cores: a process's start, a run besides warm-up and measurement, a batch.
START_S, AROUND_S, BATCH_S = 10.0, 5.0, 0.35
SLOW_BATCHES = {LOCAL: 1.0, "remote20": 2.0, "remote80": 3.0}
"""So much longer a batch takes on a store, in the mean of the systems."""


def minutes_of(plan: Plan, queries_on: Callable[[Plan, str], Sequence[str]]) -> float:
    """Minutes the plan takes, about, where nothing has to be repeated; `queries_on` are those that
    a system runs, one after the other in a process of its own for each repeat."""
    total_s = 0.0
    for system in plan.systems:
        queries = len(queries_on(plan, system))
        if queries:
            first_s, later_s = (
                about_s(plan, plan.warm_up(is_first=first)) for first in (True, False)
            )
            warm_up_s = first_s + (queries - 1) * later_s
            total_s += START_S + warm_up_s + queries * (plan.measure_s + AROUND_S)
    return plan.repeats * total_s / 60


def about_s(plan: Plan, warm_up: WarmUp) -> float:
    """Seconds a warm-up takes, about."""
    if not warm_up.batches:
        return warm_up.most_s
    by_batches_s = warm_up.batches * BATCH_S * SLOW_BATCHES[plan.store]
    return max(min(by_batches_s, warm_up.most_s), warm_up.least_s)
