"""The columnar path over the runs of a query: whether its workers are there, and when it is left
out because a batch that was planned there seems to have ended a run."""

from __future__ import annotations

import msgspec

from penstock.devices.left_out import LeftOut
from penstock.model.device_plans import PipelineBody

WORKERS_KEPT_MS = 60_000.0
"""Spark ends Python workers that had nothing to do for a minute."""
LEFT_OUT_BATCHES = 300
"""Batches for which the path is left out at first."""


class WorkerPath:
    """The columnar path of one query; batches are counted over all of its runs.

    A batch that fails ends its run without a report. So a run that begins while the last plan of
    the one before was columnar and never reported counts as a failure, and the path is left out for
    some hundred batches. A run that was stopped during such a batch looks the same.
    """

    def __init__(self) -> None:
        self._run: str | None = None
        self._used_at_ms: float | None = None
        self._unreported: int | None = None
        self._left_out = LeftOut(LEFT_OUT_BATCHES)

    # Events

    def run_asks(self, run: str, batches: int) -> bool:
        """A run asks, after so many batches of all runs; True if the one before it has failed."""
        is_new = self._run not in (None, run)
        self._run = run
        if not is_new:
            return False
        has_failed = self._unreported is not None
        self._used_at_ms = self._unreported = None
        if has_failed:
            self._left_out.failed(batches)
        return has_failed

    def planned(self, cut: int, at_ms: float, *, is_columnar: bool) -> None:
        """A batch was planned: the run has survived the one before it."""
        self._unreported = cut if is_columnar else None
        if is_columnar:
            self._used_at_ms = at_ms

    def reported(self, cut: int, *, is_columnar: bool) -> None:
        """A batch that was planned for this path has run, there or on another."""
        if self._unreported == cut:
            self._unreported = None
        if is_columnar:
            self._left_out.succeeded()
        else:
            self._used_at_ms = None

    # Answers

    def has_workers(self, at_ms: float) -> bool:
        """Whether workers of this run are there: they had something to do lately."""
        return self._used_at_ms is not None and at_ms - self._used_at_ms < WORKERS_KEPT_MS

    def left_out_batches(self, batches: int) -> int:
        """For how many batches more the path is left out."""
        return self._left_out.batches_left(batches)

    def open_pipeline(self, pipeline: PipelineBody, batches: int) -> PipelineBody:
        """The pipeline with the paths that a batch may take. One that insists on workers keeps
        them, and so does one that has no other path."""
        others = tuple(path for path in pipeline.paths if path != "columnar")
        if pipeline.devices != "auto" or not others or not self.left_out_batches(batches):
            return pipeline
        return msgspec.structs.replace(pipeline, paths=others)

    def sentence(self, batches: int) -> str | None:
        """For how long the path is left out and why; None if it is not."""
        left = self.left_out_batches(batches)
        if not left:
            return None
        return (
            f"the columnar path is left out for {left} batches: the last batch of the run before "
            "was planned there and never reported; if that run was not stopped on purpose, look in "
            "the logs of its driver and executors for a Python worker that failed or was killed"
        )
