"""Minutes that a plan of the prefetch suite takes, about."""

from __future__ import annotations

from penstock_lab.suites.prefetch.cells import FILL_SHARES, Plan

# Seconds on two quiet cores: around a run without state, a process's start, a batch at a rate. A
# quick run, 53 runs, took 12.5 minutes; how what is not batches divides was not timed.
AROUND_S, START_S, BATCH_S, ADAPTATION_S = 3.1, 7.0, 0.16, 30.0
# For a million events of a fill: to make the state, and to copy, load and check it in each run.
FILL_S, STATE_S = 25.0, 3.5
BACKLOG_ROWS_PER_S = 18_000


def minutes_of(plan: Plan) -> float:
    """Minutes the plan takes, about."""
    total = sum(len(group.processes) for group in plan.groups) * START_S
    for group in plan.rated_groups:
        backlogs = sum(len(modes) for modes in plan.backlogs_of(group))
        rated = len(group.levels) * len(group.shown) * plan.repeats
        backlog_s = plan.backlog_events / BACKLOG_ROWS_PER_S
        rated_s = (plan.warm_batches + plan.batches) * BATCH_S
        for workload in group.workloads:
            millions = plan.fill_events_of(workload) / 1e6
            around_s = AROUND_S + millions * STATE_S
            total += (START_S + millions * FILL_S) * (not workload.is_lookup)
            total += backlogs * (around_s + backlog_s) + rated * (around_s + rated_s)
    if "overhead" in plan.parts:
        turn_s = AROUND_S + plan.overhead_events / BACKLOG_ROWS_PER_S / 2
        total += 2 * (plan.overhead_turns + 1) * turn_s
    if "adaptation" in plan.parts:
        millions = plan.fill_events * FILL_SHARES["kept_bids"] / 1e6
        total += START_S + millions * (FILL_S + STATE_S) + ADAPTATION_S
    return total / 60
