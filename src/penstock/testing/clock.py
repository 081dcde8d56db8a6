"""A clock that stands still until a test turns it."""

from __future__ import annotations

from penstock.clock import SYSTEM_CLOCK, Clock


class ManualClock:
    """A `penstock.clock.Clock` for tests: time passes by `turn` and by sleeping, and by nothing
    else, unless `ms_per_reading` lets every look at the monotonic time find it later.

    Wall and monotonic time move together. `wall_error_ms` puts the wall wrong, as an administrator
    may; the monotonic time does not see it.
    """

    def __init__(self, wall_ms: int = 1_000, *, ms_per_reading: int = 0) -> None:
        self.wall_error_ms = 0
        self.slept: list[float] = []
        self._passed_ms = float(wall_ms)
        self._ms_per_reading = ms_per_reading

    @property
    def now_ms(self) -> int:
        return self.wall_ms()

    def wall_ms(self) -> int:
        return int(self._passed_ms) + self.wall_error_ms

    def monotonic_s(self) -> float:
        self._passed_ms += self._ms_per_reading
        return self._passed_ms / 1000

    def sleep(self, seconds: float) -> None:
        """Return at once, `seconds` later; `slept` keeps every call."""
        self.slept.append(seconds)
        self._passed_ms += seconds * 1000

    def turn(self, ms: float) -> None:
        """Let `ms` milliseconds pass."""
        self._passed_ms += ms

    def with_real_waits(self) -> Clock:
        """The same wall time, for a part that waits for other processes meanwhile."""
        return _WallByHand(self)


class _WallByHand:
    """Wall time of a clock turned by hand, monotonic time and sleeping of the machine."""

    def __init__(self, wall: ManualClock) -> None:
        self._wall = wall

    def wall_ms(self) -> int:
        return self._wall.wall_ms()

    def monotonic_s(self) -> float:
        return SYSTEM_CLOCK.monotonic_s()

    def sleep(self, seconds: float) -> None:
        SYSTEM_CLOCK.sleep(seconds)
