"""The GPU over the batches of a query: when it is left out because no task that was planned for it
could have it."""

from __future__ import annotations

from penstock.devices.fallbacks import CAUSES
from penstock.devices.left_out import LeftOut
from penstock.model.device_plans import BatchPlan, FallbackCause, PlanReport

LEFT_OUT_BATCHES = 50
"""Batches for which the GPU is left out at first."""


class GpuPath:
    """The GPU of one query; batches are counted over all of its runs.

    What falls back teaches the costs of the CPU alone, and those of the GPU stay as low as they
    were. So after a batch all of whose tasks for the GPU fell back the device counts as absent for
    some batches, in later runs too.
    """

    def __init__(self) -> None:
        self._cause: FallbackCause = "gone"
        self._left_out = LeftOut(LEFT_OUT_BATCHES)

    def reported(self, plan: BatchPlan, ran: PlanReport, batches: int) -> bool:
        """A planned batch has run, and so many were planned by now; True if the GPU is left out
        from now on."""
        if any(step.device == "gpu" for step in ran.operations):
            self._left_out.succeeded()
            return False
        is_planned = any(operation.device == "gpu" for operation in plan.operations)
        # Several batches may have been planned before the first report: they are one failure.
        if not is_planned or not ran.fallbacks or self.left_out_batches(batches):
            return False
        self._left_out.failed(batches)
        self._cause = max(ran.fallbacks, key=lambda fallback: fallback.tasks).cause
        return True

    def left_out_batches(self, batches: int) -> int:
        """For how many batches more the GPU is left out."""
        return self._left_out.batches_left(batches)

    def absence(self, batches: int) -> str | None:
        """For how long the GPU is left out and why; None if it is not."""
        left = self.left_out_batches(batches)
        if not left:
            return None
        return (
            f"the gpu is left out for {left} batches, because every task that was planned for it "
            f"ran on the cpu: {CAUSES[self._cause]}"
        )
