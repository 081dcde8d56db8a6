"""Arrivals of a query's rows: how many come in a second, and whether its backlog grows."""

from __future__ import annotations

MEMORY_MS = 5_000.0
"""An arrival this long ago counts for a third of one now."""
STEP_MS_MIN = 20.0


class Arrivals:
    """Rows that arrive, from what waits at each question and what batches have taken since."""

    def __init__(self) -> None:
        self.rows_waiting = 0
        self.rows_per_ms = 0.0
        self.growth_per_ms = 0.0
        self._taken = 0
        self._rows_before: int | None = None
        self._at_ms = 0.0
        self._known_ms = 0.0

    def waiting(self, rows: int | None, now_ms: float) -> None:
        """Rows that wait now; None, if the sources cannot tell, leaves everything as it is."""
        if rows is None:
            return
        passed_ms = now_ms - self._at_ms
        if self._rows_before is None:
            self._rows_before, self._at_ms, self._taken = rows, now_ms, 0
        elif passed_ms >= STEP_MS_MIN:
            self._known_ms += passed_ms
            share = passed_ms / min(self._known_ms, MEMORY_MS + passed_ms)
            grown = rows - self._rows_before
            arrived = max(grown + self._taken, 0)
            self.rows_per_ms += share * (arrived / passed_ms - self.rows_per_ms)
            self.growth_per_ms += share * (grown / passed_ms - self.growth_per_ms)
            self._rows_before, self._at_ms, self._taken = rows, now_ms, 0
        self.rows_waiting = rows

    def taken(self, rows: int | None) -> None:
        """A batch has taken so many rows."""
        self._taken += rows or 0
