"""The queue of what happens next in a simulated world; ties go in the order of scheduling."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TypeAlias

Act: TypeAlias = Callable[[], None]


class Events:
    """Simulated time: `now_ms` jumps from one event to the next."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self._queue: list[tuple[float, int, Act]] = []
        self._count = 0

    def at(self, at_ms: float, act: Act) -> None:
        """`act` is called at that time, or now if it has passed."""
        self._count += 1
        heapq.heappush(self._queue, (max(at_ms, self.now_ms), self._count, act))

    def after(self, delay_ms: float, act: Act) -> None:
        self.at(self.now_ms + delay_ms, act)

    def run(self, until_ms: float) -> None:
        """Carry events out in order, until none is left up to `until_ms`."""
        while self._queue and self._queue[0][0] <= until_ms:
            self.now_ms, _, act = heapq.heappop(self._queue)
            act()
