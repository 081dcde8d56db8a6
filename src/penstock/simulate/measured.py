"""A run measured on real Spark: its file, the cost model fitted to it, and arrivals made from it.

The file is `{"cores", "order", "queries": [{"name", "policy", "deadline_ms", "batches": [...]}]}`,
a batch `{"cut_at_ms", "visible_at_ms", "rows", "planning_ms", "core_ms"}`, its times on one clock.
The result file of `penstock bench deadlines` has the same in its runs, and is taken too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from penstock.admission.terms import PolicyName
from penstock.errors import BadCall
from penstock.simulate.traffic import Recorded
from penstock.simulate.world import Cost, Stage

BATCHES_MIN = 8
APPEND_MS = 50.0
STAGES = 2
QUIET_SHARE = 0.25
"""Where waiting was not measured, batches up to this quantile are taken to have met none."""


class MeasuredBatch(msgspec.Struct, frozen=True):
    """A batch as measured: cut to visible, and the time of its tasks."""

    cut_at_ms: float
    visible_at_ms: float
    rows: int
    planning_ms: float
    core_ms: float
    queued_ms: float | None = None
    """The time in which its jobs waited for cores, if it is known."""

    @property
    def took_ms(self) -> float:
        return max(self.visible_at_ms - self.cut_at_ms, 0.0)


class MeasuredQuery(msgspec.Struct, frozen=True):
    """A query of a measured run; batches in the order of their cuts."""

    name: str
    policy: PolicyName
    batches: tuple[MeasuredBatch, ...]
    deadline_ms: float | None = None
    interval_ms: float | None = None
    tasks: int | None = None
    """In each stage; as many as there are cores, if it is not known."""


class MeasuredRun(msgspec.Struct, frozen=True):
    """Queries that were measured together in one driver."""

    cores: int
    order: str
    queries: tuple[MeasuredQuery, ...]
    title: str = "a measured run"


class Fit(msgspec.Struct, frozen=True):
    """The cost model of a query, and the spread of its core-times around it."""

    cost: Cost
    spread: float


def read_measured(path: Path) -> list[MeasuredRun]:
    """The measured runs of a file; refuses one in which there is nothing to compare."""
    try:
        content = msgspec.json.decode(path.read_bytes())
        runs = _runs(content)
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise BadCall(
            f"{path} holds no measured run ({error}); give a file of 'penstock bench deadlines "
            "--json', or one of the form that docs/deadlines.md describes",
            code="no_measured_run",
        ) from error
    for run in runs:
        for query in run.queries:
            if sum(1 for batch in query.batches if batch.rows) < BATCHES_MIN:
                raise BadCall(
                    f"{path}: {run.title} has fewer than {BATCHES_MIN} batches with rows of "
                    f"{query.name}, too few to fit a model to; measure for longer",
                    code="too_few_batches",
                )
    if not runs:
        raise BadCall(f"{path} holds no measured run that counts", code="no_measured_run")
    return runs


def _runs(content: Any) -> list[MeasuredRun]:
    if "suite" not in content:
        return [msgspec.convert(content, MeasuredRun)]
    return [
        msgspec.convert(run["measured_run"], MeasuredRun)
        for run in content["runs"]
        if run.get("measured_run")
    ]


def fit(query: MeasuredQuery, batches: Sequence[MeasuredBatch], cores: int) -> Fit:
    """The cost of a query's batches: core-time as a line over rows, all else as time."""
    with_rows = [batch for batch in batches if batch.rows]
    tasks = query.tasks or cores
    fixed_ms, row_ms = _line(
        [float(batch.rows) for batch in with_rows], [batch.core_ms for batch in with_rows]
    )
    stages = tuple(
        Stage(tasks, fixed_ms / (tasks * STAGES), row_ms * 1000 / STAGES) for _ in range(STAGES)
    )
    left_ms = [
        batch.took_ms
        - batch.planning_ms
        - (batch.queued_ms or 0.0)
        - (fixed_ms + row_ms * batch.rows) / min(cores, tasks)
        for batch in with_rows
    ]
    is_waiting_known = all(batch.queued_ms is not None for batch in with_rows)
    release_ms = float(np.quantile(left_ms, 0.5 if is_waiting_known else QUIET_SHARE))
    ratios = [
        batch.core_ms / max(fixed_ms + row_ms * batch.rows, 1.0)
        for batch in with_rows
        if batch.core_ms > 0
    ]
    return Fit(
        Cost(
            stages,
            planning_ms=float(np.median([batch.planning_ms for batch in with_rows])),
            release_ms=max(release_ms, 0.0),
            owes_empty=any(not batch.rows for batch in batches),
        ),
        spread=float(np.std(np.log(ratios))) if ratios else 0.0,
    )


def _line(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Fixed part and slope, neither below 0: the median of slopes between all pairs of batches."""
    slopes = [
        (values[j] - values[i]) / (sizes[j] - sizes[i])
        for i in range(len(sizes))
        for j in range(i + 1, len(sizes))
        if sizes[j] != sizes[i]
    ]
    slope = max(float(np.median(slopes)), 0.0) if slopes else 0.0
    fixed = float(
        np.median([value - slope * size for size, value in zip(sizes, values, strict=True)])
    )
    if fixed < 0:
        fixed, slope = 0.0, float(np.sum(values) / max(np.sum(sizes), 1.0))
    return fixed, slope


def appends_of(query: MeasuredQuery, start_ms: float) -> list[Recorded]:
    """Appends that explain each batch with rows: they came evenly since the cut before it.

    Times are counted from `start_ms`, from which on the rows of the first batch came.
    """
    appends = []
    before_ms = start_ms
    for batch in query.batches:
        if not batch.rows:
            continue
        count = max(1, min(round((batch.cut_at_ms - before_ms) / APPEND_MS), batch.rows))
        step_ms = (batch.cut_at_ms - before_ms) / count
        shares = np.diff(np.linspace(0, batch.rows, count + 1).round().astype(int))
        at_ms = (before_ms - start_ms + step_ms * place for place in range(count))
        appends.append(Recorded(tuple(at_ms), tuple(int(share) for share in shares)))
        before_ms = batch.cut_at_ms
    return appends
