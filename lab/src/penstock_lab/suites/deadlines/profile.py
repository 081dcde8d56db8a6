"""Batch time by what it goes into, of every query and mode; late batches of runs with spare. Pure.

It explains `….throughput`: rows per second of batch time. A run that does not count enters neither.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec

from penstock_lab.experiment.figures import ordered
from penstock_lab.experiment.visible_rows import Span, under_way_ms
from penstock_lab.percentiles import median
from penstock_lab.suites.deadlines.cells import Cell, Plan
from penstock_lab.suites.deadlines.record import Record

PLACES = 3


class BatchTimes(msgspec.Struct, frozen=True):
    """Batches of one query, cut in the measured stretch of every run of a mode that counts.

    Times are medians over the batches with rows, so parts do not add up to the whole.
    """

    query: str
    deadline_s: float
    traffic: str
    mode: str
    with_rows: int
    without_rows: int
    without_rows_share: float
    """Of batch time."""
    overlap: float
    """Batch time over the time in which a batch was under way: 1 where none overlap."""
    rows: float
    took_ms: float
    """Cut to visible."""
    planning_ms: float
    queued_ms: float
    core_ms: float
    """How long tasks ran, summed over them."""
    rest_ms: float
    """The time that the others leave, if tasks had all cores: starting them, release, commit."""

    @property
    def cell(self) -> Cell:
        return Cell(self.query, self.deadline_s, self.traffic)


class LateBatch(msgspec.Struct, frozen=True):
    """A batch whose oldest row was visible after its deadline, in a run with spare."""

    query: str
    deadline_s: float
    repeat: int
    batch: int
    rows: int
    age_ms: float
    """Of its oldest row when it was cut."""
    predicted_ms: float | None
    """Cut to visible, as predicted at the cut."""
    took_ms: float
    queued_ms: float
    is_after_empty: bool
    """Whether the batch before it had no rows."""

    @property
    def late_ms(self) -> float:
        return self.age_ms + self.took_ms - self.deadline_s * 1000


class Profile(msgspec.Struct, frozen=True):
    """Batch times of the compared runs, and the late batches of those with spare."""

    batches: list[BatchTimes]
    late: list[LateBatch]
    with_spare: int
    """Batches with rows in the runs with spare, late or not."""


def profile(plan: Plan, records: Sequence[Record]) -> Profile:
    spare = [record for record in records if record.kind == "spare"]
    measured = [
        span
        for record in spare
        for query_run in record.queries.values()
        if query_run.run.is_counted
        for span in query_run.measured
    ]
    return Profile(
        batch_times(plan, records),
        [late for record in spare for late in late_batches(record)],
        sum(span.rows > 0 for span in measured),
    )


def for_file(plan: Plan, records: Sequence[Record]) -> dict[str, Any]:
    """The profile for the result file."""
    built = msgspec.to_builtins(profile(plan, records))
    for each in (*built["batches"], *built["late"]):
        each.update(
            {key: round(value, PLACES) for key, value in each.items() if isinstance(value, float)}
        )
    return dict(built)


def batch_times(plan: Plan, records: Sequence[Record]) -> list[BatchTimes]:
    """Batch times by query, deadline and traffic, modes in the order of the plan. A mode that knows
    of no deadline stands at the one it was run at."""
    runs: dict[tuple[str, Cell], list[list[Span]]] = {}
    for record in records:
        for query, query_run in record.queries.items():
            if record.kind == "compared" and query_run.run.is_counted:
                cell = Cell(query, record.cell.deadline_s, record.cell.traffic)
                runs.setdefault((record.system, cell), []).append(query_run.measured)
    made = []
    for cell in ordered(cell for _, cell in runs):
        for mode in plan.modes:
            times = times_of(cell, mode, runs.get((mode, cell), []), plan.cores)
            made += [] if times is None else [times]
    return made


def times_of(
    cell: Cell, mode: str, runs: Sequence[Sequence[Span]], cores: int
) -> BatchTimes | None:
    """Batch times over several runs, whose batches overlap within a run only; None where no batch
    had rows or took time."""
    spans = [span for run in runs for span in run]
    filled = [span for span in spans if span.rows]
    took_ms, under_ms = sum(span.took_ms for span in spans), sum(map(under_way_ms, runs))
    if not filled or not under_ms:
        return None
    return BatchTimes(
        *(cell.query, cell.deadline_s, cell.traffic, mode),
        with_rows=len(filled),
        without_rows=len(spans) - len(filled),
        without_rows_share=sum(span.took_ms for span in spans if not span.rows) / took_ms,
        overlap=took_ms / under_ms,
        rows=middle([float(span.rows) for span in filled]),
        took_ms=middle([span.took_ms for span in filled]),
        planning_ms=middle([span.planning_ms for span in filled]),
        queued_ms=middle([span.queued_ms for span in filled]),
        core_ms=middle([span.tasks_ms for span in filled]),
        rest_ms=middle([rest_ms(span, cores) for span in filled]),
    )


def middle(values: Sequence[float]) -> float:
    return median(values) or 0.0


def rest_ms(span: Span, cores: int) -> float:
    known_ms = span.planning_ms + span.queued_ms + span.tasks_ms / cores
    return max(span.took_ms - known_ms, 0.0)


def late_batches(record: Record) -> list[LateBatch]:
    """The measured batches of a run whose oldest row missed the deadline, query by query."""
    deadline_s = record.cell.deadline_s
    late = []
    for query, query_run in record.queries.items():
        if not query_run.run.is_counted:
            continue
        measured = {span.batch for span in query_run.measured}
        for before, span in itertools.pairwise((None, *query_run.spans)):
            assert span is not None
            if span.batch in measured and span.rows and span.oldest_ms > deadline_s * 1000:
                late.append(
                    LateBatch(
                        *(query, deadline_s, record.repeat, span.batch, span.rows),
                        age_ms=span.oldest_ms - span.took_ms,
                        predicted_ms=span.predicted_ms,
                        took_ms=span.took_ms,
                        queued_ms=span.queued_ms,
                        is_after_empty=before is not None and not before.rows,
                    )
                )
    return late
