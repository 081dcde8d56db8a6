"""The GPU over the batches of a query: when it is left out because no task that was planned for it
could have it."""

from __future__ import annotations

from penstock.devices.fallbacks import CAUSES
from penstock.model.device_plans import BatchPlan, FallbackCause, PlanReport

LEFT_OUT_BATCHES = 50
"""Batches for which the GPU is left out at first."""
LEFT_OUT_BATCHES_MAX = 16 * LEFT_OUT_BATCHES


class GpuPath:
    """The GPU of one query; batches are counted over all of its runs.

    What falls back teaches the costs of the CPU alone, and those of the GPU stay as low as they
    were. So after a batch all of whose tasks for the GPU fell back the device counts as absent for
    some batches. Each further one doubles that, up to a bound, unless as many batches as it was
    left out for have used it in between.
    """

    def __init__(self) -> None:
        self._cause: FallbackCause = "gone"
        self._used = 0
        self._pause = 0
        self._left_out_until = 0

    def reported(self, plan: BatchPlan, ran: PlanReport, batches: int) -> bool:
        """A planned batch has run, and so many were planned by now; True if the GPU is left out
        from now on."""
        if any(step.device == "gpu" for step in ran.operations):
            self._used += 1
            return False
        is_planned = any(operation.device == "gpu" for operation in plan.operations)
        # Several batches may have been planned before the first report: they are one failure.
        if not is_planned or not ran.fallbacks or self.left_out_batches(batches):
            return False
        doubled = min(2 * self._pause, LEFT_OUT_BATCHES_MAX)
        self._pause = doubled if self._pause and self._used < self._pause else LEFT_OUT_BATCHES
        self._used = 0
        self._left_out_until = batches + self._pause
        self._cause = max(ran.fallbacks, key=lambda fallback: fallback.tasks).cause
        return True

    def left_out_batches(self, batches: int) -> int:
        """For how many batches more the GPU is left out."""
        return max(self._left_out_until - batches, 0)

    def absence(self, batches: int) -> str | None:
        """For how long the GPU is left out and why; None if it is not."""
        left = self.left_out_batches(batches)
        if not left:
            return None
        return (
            f"the gpu is left out for {left} batches, because every task that was planned for it "
            f"ran on the cpu: {CAUSES[self._cause]}"
        )
