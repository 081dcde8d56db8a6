"""The summary of a simulated run: the figures that its table, its file and its picture show."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from penstock.simulate.outcome import Latencies, Outcome
from penstock.simulate.world import World


class QuerySummary(msgspec.Struct, frozen=True):
    """The figures of one query of a run."""

    name: str
    deadline_ms: float | None
    p50_ms: float
    p95_ms: float
    p99_ms: float
    mean_ms: float
    miss_ratio: float
    throughput: float
    batches: int
    batches_without_data: int
    longest_hold_ms: float
    longest_wait_for_cores_ms: float


class Summary(msgspec.Struct, frozen=True):
    """The figures of one run. `relative_p95` and `curve` are latency over deadline."""

    policy: str
    order: str
    workers: int
    cores: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    mean_ms: float
    relative_p95: float
    miss_ratio: float
    worst_miss_ratio: float
    worst_query: str
    throughput: float
    busy_share: float
    prediction_error: float | None
    rows_never_visible: int
    ended_at_s: float
    questions: int
    queries: tuple[QuerySummary, ...]
    curve: tuple[float, ...]

    @property
    def system(self) -> str:
        """Policy and order in one word: deadline/edf."""
        return f"{self.policy}/{self.order}"


def summary_of(world: World, policy: str, outcome: Outcome) -> Summary:
    """The figures of a run of this world under this policy."""
    latencies = outcome.latencies
    relative = _relative(outcome)
    worst = max(outcome.queries, key=lambda query: query.miss_ratio)
    return Summary(
        policy=policy,
        order=world.order,
        workers=world.cluster.workers,
        cores=world.cluster.cores,
        p50_ms=latencies.percentile_ms(50),
        p95_ms=latencies.percentile_ms(95),
        p99_ms=latencies.percentile_ms(99),
        mean_ms=latencies.mean_ms,
        relative_p95=relative.percentile_ms(95),
        miss_ratio=outcome.miss_ratio,
        worst_miss_ratio=worst.miss_ratio,
        worst_query=worst.name,
        throughput=outcome.throughput,
        busy_share=outcome.busy_share,
        prediction_error=outcome.prediction_error(),
        rows_never_visible=sum(query.rows_never_visible for query in outcome.queries),
        ended_at_s=outcome.ended_at_ms / 1000,
        questions=outcome.asked,
        queries=tuple(QuerySummary(**_figures_of(query)) for query in outcome.queries),
        curve=tuple(relative.curve()),
    )


def _relative(outcome: Outcome) -> Latencies:
    """Latencies as shares of each query's deadline; queries without one are left out."""
    return Latencies.joined(
        Latencies(query.latencies.ms / query.deadline_ms, np.asarray(query.latencies.rows))
        for query in outcome.queries
        if query.deadline_ms is not None
    )


def _figures_of(query: Any) -> dict[str, Any]:
    latencies = query.latencies
    same = ("name", "deadline_ms", "miss_ratio", "throughput", "batches", "batches_without_data")
    waits = ("longest_hold_ms", "longest_wait_for_cores_ms")
    return {
        "p50_ms": latencies.percentile_ms(50),
        "p95_ms": latencies.percentile_ms(95),
        "p99_ms": latencies.percentile_ms(99),
        "mean_ms": latencies.mean_ms,
        **{name: getattr(query, name) for name in (*same, *waits)},
    }
