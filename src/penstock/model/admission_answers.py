"""Answers about admission with deadlines: decisions explained, and an operator's deadline."""

from __future__ import annotations

import msgspec

from penstock.model.device_plans import QueryDevices
from penstock.model.plan_notes import PlanNoteBody


class AdmissionDecision(msgspec.Struct, frozen=True):
    """A decision of admission `ago_ms` ago: what was buffered, predicted and, later, measured.

    Times of a cut are from cut to visible; `ends_in_ms` is of a wait that lasts.
    """

    ago_ms: float
    is_cut: bool
    reason: str
    rows: int | None
    bytes: int | None
    oldest_age_ms: float
    predicted_ms: float | None = None
    left_ms: float | None = None
    measured_ms: float | None = None
    ends_in_ms: float | None = None


class QueryAdmission(msgspec.Struct, frozen=True):
    """Admission of one query, explained: its terms, its last decisions, how it has fared.

    What waits and arrives is null in a unit that the sources do not tell. `floor_ms` is the least
    that a batch takes, `sustainable_ms` the shortest deadline that can hold at the present rate.
    `errors` are median errors of the estimators, as shares; `moment_late_ms_p95` is how long after
    its moment a batch was cut, or after the next question where the moment passed while Spark asked
    nothing, which `moments_unasked` counts. `decision_share` is the time that decisions took
    against that of the batches, `planning_share` that of making plans, carrying them out and
    learning from them. `devices` is there if its batches are planned. `plan_notes` are those of its
    last run, by rule and operator.
    """

    query: str
    name: str | None
    policy: str
    deadline_ms: float | None
    deadline_set_by: str
    importance: float
    batches: int
    batches_late: int
    slack_ms_p50: float | None
    slack_ms_p5: float | None
    floor_ms: float | None
    sustainable_ms: float | None
    fixed_ms: float | None
    ms_per_1000_rows: float | None
    rows_per_s: float | None
    rows_waiting: int | None
    backlog_rows_per_s: float | None
    errors: dict[str, float]
    decisions: tuple[AdmissionDecision, ...]
    warning: str | None = None
    moment_late_ms_p95: float | None = None
    decision_share: float | None = None
    moments_unasked: int = 0
    planning_share: float | None = None
    devices: QueryDevices | None = None
    plan_notes: tuple[PlanNoteBody, ...] = ()
    bytes_per_s: float | None = None
    bytes_waiting: int | None = None
    backlog_bytes_per_s: float | None = None
    files_waiting: int | None = None


class QueryDeadline(msgspec.Struct, frozen=True):
    """The deadline in force for a query after an operator's change, and a warning if the query has
    never had batches that fast."""

    query: str
    name: str | None
    deadline_ms: float | None
    warning: str | None = None
