"""Cells of the columnar suite: queries, windows, sizes of batches, one row for a worker, and the
long run from which planning learns."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.errors import BadCall
from penstock_lab.measure import window_batches
from penstock_lab.measure.window_batches import AUTO, CPU, PATH_CONF, TERMS
from penstock_lab.measure.window_cases import Case, streams_of

SPARK = "spark"
PATHS = tuple(PATH_CONF)
ROWS, ROWS_SMALL = 400_000, 20_000
RATE = 40_000
COMMIT_ROWS = 20_000
GOAL_QUERIES = ("cm_category", "cm_job", "lr_speed")
OTHER_QUERIES = ("lr_count",)
"""A vehicle has one row per pane, and its state a row per window: nothing to gain below state."""
WINDOWS = ((30, 1), (60, 5), (60, 10))
SMALL_WINDOW = (60, 5)
EXPANDING = frozenset({(30, 1), (60, 5)})
"""Windows of which a row is in so many that their expansion is most of a batch."""
LEARNING_BATCHES = 140
"""Probes of one query are fifty batches apart, a hundred after one that had to start workers: by
then each of the two paths that are not the cheapest was tried."""
# Seconds on two quiet cores: a session's start with its first query, a run's costs besides its
# batches, a batch's besides its rows; for a million rows their writing, their batch on any path,
# and what Spark's own path adds for each window.
SESSION_S, AROUND_S, BATCH_S = 20.0, 1.2, 0.2
WRITE_S, ROWS_S, WINDOW_S = 3.0, 0.5, 0.1


class Plan(msgspec.Struct, frozen=True):
    """The cases and their sizes; the quick plan differs in repeats and batches only."""

    repeats: int
    batches: int
    warm_up: int
    small_batches: int
    small_warm_up: int
    rows: int = ROWS
    rows_small: int = ROWS_SMALL
    rate: int = RATE
    commit_rows: int = COMMIT_ROWS
    learning_batches: int = LEARNING_BATCHES
    paths: tuple[str, ...] = PATHS
    queries: tuple[str, ...] = (*GOAL_QUERIES, *OTHER_QUERIES)

    @property
    def cases(self) -> tuple[Case, ...]:
        """Goals first, and of each query the large batches before the small ones."""
        return tuple(
            case
            for family in self.queries
            for case in (
                *(self._large(family, *window) for window in WINDOWS if family in GOAL_QUERIES),
                self._small(family),
            )
        )

    @property
    def round_trips(self) -> Case:
        """Batches of one row, which one worker gets: its way there and back and hardly more."""
        counts = (self.small_batches, self.small_warm_up)
        return Case(self.queries[0], *SMALL_WINDOW, 1, *counts, is_goal=False)

    @property
    def learning(self) -> Case | None:
        """Small batches of the first query of the goals, planned, before anything is measured; None
        where no goal is asked for."""
        family = next((name for name in self.queries if name in GOAL_QUERIES), None)
        if family is None:
            return None
        counts = (self.learning_batches, 0)
        return Case(
            family, *SMALL_WINDOW, self.rows_small, *counts, is_goal=False, is_learning=True
        )

    @property
    def steps(self) -> int:
        return 1 + (self.learning is not None) + self.repeats

    @property
    def minutes(self) -> float:
        """Minutes the plan takes, about."""
        learning = () if self.learning is None else (self.learning,)
        rows = sum(streams_of((*self.cases, *learning)).values())
        repeat_s = SESSION_S + sum(_run_s(case, path) for case in self.cases for path in self.paths)
        repeat_s += _run_s(self.round_trips, CPU)
        learning_s = sum(SESSION_S + _run_s(case, AUTO) for case in learning)
        return (rows / 1e6 * WRITE_S + learning_s + self.repeats * repeat_s) / 60

    def _large(self, family: str, range_s: int, slide_s: int) -> Case:
        return Case(family, range_s, slide_s, self.rows, self.batches, self.warm_up)

    def _small(self, family: str) -> Case:
        is_goal = family in GOAL_QUERIES
        counts = (self.small_batches, self.small_warm_up)
        return Case(family, *SMALL_WINDOW, self.rows_small, *counts, True, is_goal)

    def settings(self) -> dict[str, Any]:
        return {
            **msgspec.to_builtins(self),
            "master": window_batches.MASTER,
            "spark": window_batches.CONF,
            "source_options": TERMS,
            "path_settings": {path: dict(PATH_CONF[path]) for path in self.paths},
        }


def _run_s(case: Case, path: str) -> float:
    windows = case.windows if path == SPARK else 0
    batch_s = BATCH_S + case.rows / 1e6 * (ROWS_S + windows * WINDOW_S)
    return AROUND_S + (case.warm_up + case.batches) * batch_s


QUICK = Plan(repeats=3, batches=3, warm_up=2, small_batches=6, small_warm_up=3)
FULL = Plan(repeats=5, batches=10, warm_up=3, small_batches=30, small_warm_up=8)


def plan_of(*, quick: bool = False, queries: tuple[str, ...] = ()) -> Plan:
    plan = QUICK if quick else FULL
    unknown = [name for name in queries if name not in plan.queries]
    if unknown:
        raise BadCall(
            f"there is no query {', '.join(unknown)} here; there is {', '.join(plan.queries)}",
            code="unknown_query",
        )
    chosen = tuple(name for name in plan.queries if name in (queries or plan.queries))
    return msgspec.structs.replace(plan, queries=chosen)
