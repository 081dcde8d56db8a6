"""Planning, as admission asks for it: the stage that plans is given to it, and not imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.model.device_plans import BatchPlan, BatchToPlan, PipelineBody
from penstock.model.requests import BatchReport


class BatchPlanner(Protocol):
    """Says on which path and on which devices a batch runs that was just cut."""

    def problem(self, pipeline: PipelineBody) -> str | None:
        """A sentence that says why a pipeline cannot be run as its query wants; None if it can."""
        ...

    def plan(self, query: str, pipeline: PipelineBody, batch: BatchToPlan) -> BatchPlan:
        """The plan of a batch. Part of the answer, so it takes a fraction of a millisecond."""
        ...

    def heard(self, query: str, pipeline: PipelineBody, reports: Sequence[BatchReport]) -> None:
        """Note finished batches."""
        ...

    def tune(self, query: str) -> None:
        """Learn from what was noted, off the path of an answer."""
        ...
