"""Figures of the protocols suite from its runs. Pure; a run that does not count enters none.

A ratio is theirs over ours, so that above 1 is ahead; what the marker costs over no protocol at all
is above 1 by nature.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.baselines.task_graph.registry import PROTOCOLS
from penstock_lab.experiment.figures import (
    Figure,
    Goal,
    Ratio,
    latency_p50,
    latency_p99,
    medians,
    ordered,
    ratios,
    sender_lag,
    verdict_counts,
)
from penstock_lab.experiment.losses import beside
from penstock_lab.suites.protocols.cells import SHORTEST_MS, Cell, Plan
from penstock_lab.suites.protocols.runs import Record

P50_GOAL, P99_GOAL, P50_MIN_GOAL, UNSAFE_GOAL = 1.4, 3.1, 1.0, 2.0
FIGURES = (
    ("p50_ms", "ms", "event-time latency of visible results, median", latency_p50),
    ("p99_ms", "ms", "event-time latency of visible results, 99 of 100", latency_p99),
    (
        *("commits_per_s", "", "of the task that committed least often"),
        lambda record: record.commits_per_s,
    ),
)


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Per cell and protocol its latencies; then the sender; then the headline."""
    every = [record.run for record in records]
    return [
        *per_cell(plan, records),
        *sender_lag(every),
        *headline(records),
        *verdict_counts(every),
    ]


def per_cell(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Latencies and commits of every protocol at every cell."""
    made: list[Figure] = []
    for cell in ordered(record.cell for record in records):
        for protocol in plan.protocols:
            mine = [r for r in records if (r.cell, r.system) == (cell, protocol)]
            made += medians(f"{cell.name}.{protocol}", mine, FIGURES)
    return made


def headline(records: Sequence[Record]) -> list[Figure]:
    made: list[Figure] = []
    middles = ratios(records, ("transaction",), "marker", latency_p50)
    tails = ratios(records, ("transaction",), "marker", latency_p99)
    for name, words, among, choose, goal in (
        ("marker_vs_transaction_p50_10ms", "p50, transaction over marker, least",
         shortest(middles), min, Goal("at least", P50_GOAL)),
        ("marker_vs_transaction_p99_10ms", "p99, transaction over marker, least",
         shortest(tails), min, Goal("at least", P99_GOAL)),
        ("marker_vs_transaction_p50_min", "p50, transaction over marker, least of all",
         middles, min, Goal("at least", P50_MIN_GOAL)),
        ("aligned_vs_marker_p50_max", "p50, aligned over marker, most of all",
         ratios(records, ("aligned",), "marker", latency_p50), max, None),
        ("marker_vs_unsafe_p50_max", "p50, marker over unsafe, most of all",
         ratios(records, ("marker",), "unsafe", latency_p50), max, Goal("at most", UNSAFE_GOAL)),
    ):  # fmt: skip
        if among:
            chosen: Ratio[Cell] = choose(among, key=lambda ratio: ratio.value)
            both = [protocol for protocol in PROTOCOLS if protocol in words]
            sentence = f"{words}: {chosen.cell.words}; {beside(*both)}"
            made.append(
                Figure(f"headline.{name}", "x", sentence, chosen.value, chosen.repeats, goal)
            )
    for share, among in (("p50", middles), ("p99", tails)):
        sentence = f"{share}, transaction over marker"
        for ratio in among:
            name = f"{ratio.cell.name}.marker_vs_transaction_{share}"
            made.append(Figure(name, "x", sentence, ratio.value, ratio.repeats))
    return made


def shortest(among: Sequence[Ratio[Cell]]) -> list[Ratio[Cell]]:
    return [ratio for ratio in among if ratio.cell.interval_ms == SHORTEST_MS]
