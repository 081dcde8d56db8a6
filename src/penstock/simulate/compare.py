"""Comparison of the model with a run on real Spark, twice: with its cuts, and with our decisions.

The model is fitted to the first half of the batches and compared with the second. *Replayed*, the
simulated queries cut what the measured ones cut, when they did: that tries the model of cores and
times. *Decided*, the policy itself cuts the rows that arrived: that tries all of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain

import msgspec
import numpy as np

from penstock.admission.decision import Cut, Decision, Wait
from penstock.admission.terms import Terms
from penstock.simulate.engine import Parts, simulate
from penstock.simulate.measured import MeasuredQuery, MeasuredRun, appends_of, fit
from penstock.simulate.outcome import BatchRecord, Latencies, Outcome, latencies_of
from penstock.simulate.traffic import Recorded
from penstock.simulate.world import Cluster, Luck, QueryModel, World

LEAD_MS = 200.0
SEEDS = 9
"""Replays of a run. One would hang on chance: where two queries cut in the same millisecond, which
one is first decides how long the other waits."""
CLOSE = 0.35
"""The model is close to a run if it errs by no more than this, query by query."""


class Figures(msgspec.Struct, frozen=True):
    """Latencies of rows, and the median time of a batch from cut to visible."""

    p50_ms: float
    p95_ms: float
    mean_ms: float
    miss_ratio: float
    batch_p50_ms: float


class QueryComparison(msgspec.Struct, frozen=True):
    """One query: measured, simulated, and the median error of its replayed batches, of which the
    median of all replays counts."""

    name: str
    measured: Figures
    simulated: Figures
    batch_error: float


class Comparison(msgspec.Struct, frozen=True):
    """A measured run beside the simulated one."""

    title: str
    queries: tuple[QueryComparison, ...]

    @property
    def is_close(self) -> bool:
        return all(query.batch_error <= CLOSE for query in self.queries)

    @property
    def sentence(self) -> str:
        worst = max(self.queries, key=lambda query: query.batch_error)
        verdict = "close" if self.is_close else "far off"
        return (
            f"the model is {verdict}: replayed, the median batch of {worst.name} is off by "
            f"{worst.batch_error:.0%}, and no query's by more; fitted to the first half of the "
            "batches, compared with the second"
        )


class ReplayedAdmission:
    """Answers with the cuts that were measured, when they were; learns nothing."""

    def __init__(self, cuts: list[list[tuple[float, int]]], cores: int, order: str) -> None:
        self.asked = 0
        self.wake: Callable[[int], None] = lambda _: None
        self._cuts = [list(reversed(of_query)) for of_query in cuts]

    def open(self, query: int, model: QueryModel) -> None:
        pass

    def ask(
        self, query: int, rows: int, oldest_age_ms: float | None, *, is_first: bool, now_ms: float
    ) -> Decision:
        """The next measured cut, at its time or as soon after it as the query is free."""
        left = self._cuts[query]
        if oldest_age_ms is None:
            return Wait(now_ms, "nothing waits")
        if not left:
            return Cut("the measured run is over")
        at_ms, rows_max = left[-1]
        if now_ms < at_ms:
            return Wait(at_ms, "the measured run cut later")
        left.pop()
        return Cut("as measured", rows_max=rows_max)

    def cut_made(self, batch: BatchRecord) -> None:
        pass

    def batch_done(self, batch: BatchRecord) -> None:
        pass


def compare(run: MeasuredRun) -> Comparison:
    """The model beside a measured run."""
    # Rows of the first batches came before their cut, but nobody measured when.
    start_ms = min(query.batches[0].cut_at_ms for query in run.queries) - LEAD_MS
    appends = [appends_of(query, start_ms) for query in run.queries]
    world = _world(run, appends)
    replayed = [_replayed(run, replace(world, seed=seed), start_ms) for seed in range(SEEDS)]
    decided = simulate(world)
    return Comparison(
        run.title,
        tuple(
            QueryComparison(
                query.name,
                _measured_figures(query, appends[number], start_ms),
                _simulated_figures(
                    query, decided, number, _middle_ms(query) - start_ms, _joined(appends[number])
                ),
                float(np.median([_batch_error(query, replay, number) for replay in replayed])),
            )
            for number, query in enumerate(run.queries)
        ),
    )


def _world(run: MeasuredRun, appends: list[list[Recorded]]) -> World:
    """The fitted queries with the appends that were measured."""
    models, spreads = [], []
    for query, of_query in zip(run.queries, appends, strict=True):
        fitted = fit(query, query.batches[: len(query.batches) // 2], run.cores)
        spreads.append(fitted.spread)
        terms = Terms(
            deadline_ms=query.deadline_ms, policy=query.policy, interval_ms=query.interval_ms
        )
        models.append(QueryModel(query.name, fitted.cost, terms, _joined(of_query)))
    seconds = max(of_query[-1].at_ms[-1] for of_query in appends) / 1000
    cluster = Cluster(1, run.cores, Luck(spread=float(np.median(spreads))))
    return World(0, cluster, tuple(models), run.order, seconds)


def _replayed(run: MeasuredRun, world: World, start_ms: float) -> Outcome:
    """The world with the cuts that were measured, each somewhere in its millisecond."""
    luck = random.Random(f"{world.seed} cuts")
    cuts = [
        [
            (batch.cut_at_ms - start_ms + luck.random(), batch.rows)
            for batch in query.batches
            if batch.rows
        ]
        for query in run.queries
    ]
    return simulate(world, Parts(admission=partial(ReplayedAdmission, cuts)))


def _joined(appends: list[Recorded]) -> Recorded:
    return Recorded(
        tuple(chain.from_iterable(part.at_ms for part in appends)),
        tuple(chain.from_iterable(part.rows for part in appends)),
    )


def _middle_ms(query: MeasuredQuery) -> float:
    """The cut from which on batches are compared."""
    return query.batches[len(query.batches) // 2].cut_at_ms


def _measured_figures(query: MeasuredQuery, appends: list[Recorded], start_ms: float) -> Figures:
    middle_ms = _middle_ms(query)
    with_rows = [batch for batch in query.batches if batch.rows]
    pairs = [
        (batch, part)
        for batch, part in zip(with_rows, appends, strict=True)
        if batch.cut_at_ms >= middle_ms
    ]
    latencies = Latencies.joined(
        Latencies(
            batch.visible_at_ms - start_ms - np.asarray(part.at_ms),
            np.asarray(part.rows, np.float64),
        )
        for batch, part in pairs
    )
    return _figures(latencies, query.deadline_ms, [batch.took_ms for batch, _ in pairs])


def _simulated_figures(
    query: MeasuredQuery, outcome: Outcome, number: int, from_ms: float, appends: Recorded
) -> Figures:
    batches = [
        batch
        for batch in outcome.batches
        if batch.query == number and batch.has_data and batch.cut_at_ms >= from_ms
    ]
    latencies = latencies_of(batches, appends.at_ms, appends.rows)
    return _figures(latencies, query.deadline_ms, [batch.visible_ms or 0.0 for batch in batches])


def _figures(latencies: Latencies, deadline_ms: float | None, batch_ms: list[float]) -> Figures:
    late = latencies.rows[latencies.ms > (deadline_ms or np.inf)].sum()
    return Figures(
        p50_ms=latencies.percentile_ms(50),
        p95_ms=latencies.percentile_ms(95),
        mean_ms=latencies.mean_ms,
        miss_ratio=float(late / max(latencies.rows.sum(), 1.0)),
        batch_p50_ms=float(np.median(batch_ms)) if batch_ms else 0.0,
    )


def _batch_error(query: MeasuredQuery, replayed: Outcome, number: int) -> float:
    """The median error of a replayed batch, as a share of what was measured."""
    middle_ms = _middle_ms(query)
    measured = [batch for batch in query.batches if batch.rows]
    simulated = [batch for batch in replayed.batches if batch.query == number and batch.has_data]
    errors = [
        abs((ours.visible_ms or 0.0) - theirs.took_ms) / max(theirs.took_ms, 1.0)
        for ours, theirs in zip(simulated, measured, strict=False)
        if theirs.cut_at_ms >= middle_ms
    ]
    return float(np.median(errors)) if errors else 1.0
