"""The question of a query with a deadline or a policy, for all its sources, and its answer."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.admission.cut import NO_LIMITS, Limits
from penstock.admission.offer import Waiting
from penstock.admission.question import Input, QueryRun
from penstock.admission.terms import Terms
from penstock.model.answers import AdmittedInput
from penstock.model.device_plans import BatchPlan, PipelineBody
from penstock.model.plan_notes import PlanNoteBody
from penstock.model.requests import BatchReport


class LogInput(msgspec.Struct, frozen=True):
    """A source that reads a stream of the log; `number` counts the query's sources over it."""

    source: int
    input: Input
    number: int = 0
    limits: Limits = NO_LIMITS


class OutsideInput(msgspec.Struct, frozen=True):
    """A source outside the log, and what waits in it as it told with the question."""

    waiting: Waiting

    @property
    def source(self) -> int:
        return self.waiting.source


class BatchQuestion(msgspec.Struct, frozen=True):
    """May the next batch of `query` begin, and how far may it read each of its sources?"""

    query: str
    application: str
    cores: int
    inputs: tuple[LogInput | OutsideInput, ...]
    terms: Terms
    name: str | None = None
    run: QueryRun | None = None
    is_first: bool = False
    must_cut: bool = False
    reports: tuple[BatchReport, ...] = ()
    schedule: str | None = None
    wait_s: float = 0.0
    pipeline: PipelineBody | None = None
    plan_notes: tuple[PlanNoteBody, ...] = ()

    @property
    def log_inputs(self) -> tuple[LogInput, ...]:
        return tuple(each for each in self.inputs if isinstance(each, LogInput))


Take = Literal["all", "nothing"] | int
"""A source's part outside the log: so many of what it cuts by, or all or nothing."""


class BatchAnswer(msgspec.Struct, frozen=True):
    """Whether the batch begins now (`cut` is its number), with what, and where its part runs that
    can be planned."""

    cut: int | None
    inputs: tuple[AdmittedInput, ...]
    left_ms: float | None
    weight: float
    predicted_ms: float | None
    reason: str
    policy: str
    deadline_ms: float | None
    plan: BatchPlan | None = None
