"""Figures of the paper suite from its runs: MiSA's part, Impeller's, what sums both up. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.experiment.figures import (
    Figure,
    Goal,
    latency_p99,
    middle,
    ordered,
    ratios,
    sender_lag,
    verdict_counts,
)
from penstock_lab.experiment.losses import beside
from penstock_lab.suites import protocols
from penstock_lab.suites.paper.batch_figures import (
    batch_ratios,
    lr2_rate,
    per_cell,
    stores,
    uncalibrated_queries,
    with_bounds,
)
from penstock_lab.suites.paper.cells import Plan
from penstock_lab.suites.paper.graph_runs import Recovered, rate_by_rule, rungs_of
from penstock_lab.suites.paper.papers import RECOVERY_RATIO
from penstock_lab.suites.paper.runs import Record, of_batches, of_graphs


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """MiSA's per cell and system, then Impeller's, then the generator and the headline."""
    compared = with_bounds(of_batches(records))
    # A search is to find a rate that fails, and where the sender gets late; so is a lower bound.
    calibrations = of_batches(records, "calibration")
    judged = [record.run for record in (*compared, *calibrations)]
    judged += [record.run for record in of_graphs(records)]
    every = [record.run for record in records if not isinstance(record, Recovered)]
    return [
        *per_cell(compared),
        *stores(plan.batches, calibrations),
        *lr2_rate(of_batches(records, "sustain")),
        *batch_ratios(compared, uncalibrated_queries(plan.batches, calibrations)),
        *protocol_figures(plan, records),
        *recovery(records),
        *sender_lag(judged),
        *verdict_counts(every, judged),
    ]


def protocol_figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Figures of the protocols suite, p99 of `aligned` beside them, and the rate of every query."""
    compared, tried = of_graphs(records), of_graphs(records, "sustain")
    made: list[Figure] = []
    for query in ordered(record.cell.query for record in tried):
        rate = rate_by_rule(rungs_of(tried, query))
        words = "largest rate at which markers and transactions every 100 ms are at their best"
        made.append(Figure(f"log.{query.upper()}.rate_per_s", "events/s", words, float(rate)))
    if plan.graphs is None or not compared:
        return made
    made += protocols.figures.per_cell(plan.graphs.protocols, compared)
    made += protocols.figures.headline(compared)
    tails = ratios(compared, ("aligned",), "marker", latency_p99)
    if tails:
        most = max(tails, key=lambda ratio: ratio.value)
        words = f"p99, aligned over marker, most of all: {most.cell.words}; "
        words += beside("aligned", "marker")
        name = "headline.aligned_vs_marker_p99_max"
        made.append(Figure(name, "x", words, most.value, most.repeats))
    return made


def recovery(records: Sequence[Record]) -> list[Figure]:
    """Start to first new marker, cold and warm, with checkpoints and without."""
    made: list[Figure] = []
    for record in records:
        if not isinstance(record, Recovered):
            continue
        for start, prefix in (("cold", ""), ("warm", "warm_")):
            pair = {how: record.took[f"{prefix}{how}_ms"] for how in ("with", "without")}
            for how, took_ms in pair.items():
                words = f"{start} worker to first new marker, {how} checkpoints"
                made += middle(f"recovery.{start}_{how}_ms", "ms", words, took_ms)
            each = zip(pair["without"], pair["with"], strict=True)
            words = f"recovery of {start} tasks, without over with checkpoints"
            goal = Goal("at least", RECOVERY_RATIO) if start == "warm" else None
            name = f"headline.recovery_{start}_ratio"
            made += middle(name, "x", words, [above / below for above, below in each], goal)
    return made
