"""For how many batches a path or device that has failed is left out."""

from __future__ import annotations

PAUSES_MAX = 16
"""The longest pause, in first pauses."""


class LeftOut:
    """The pause after a failure, counted in batches.

    Each further failure doubles it, up to a bound, unless there were as many successes in between
    as batches in the last pause.
    """

    def __init__(self, first_pause_batches: int) -> None:
        self._first = first_pause_batches
        self._pause = 0
        self._until = 0
        self._successes = 0

    def succeeded(self) -> None:
        """A batch ran there."""
        self._successes += 1

    def failed(self, batches: int) -> None:
        """A batch failed there, when so many were counted."""
        doubled = min(2 * self._pause, PAUSES_MAX * self._first)
        self._pause = doubled if self._successes < self._pause else self._first
        self._successes = 0
        self._until = batches + self._pause

    def batches_left(self, batches: int) -> int:
        """For how many batches more the pause lasts, when so many were counted; 0: it is over."""
        return max(self._until - batches, 0)
