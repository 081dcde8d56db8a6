"""A line fitted to what batches cost: a fixed part and a part for each row or byte."""

from __future__ import annotations

import msgspec

FORGETTING = 0.9
FORGETTING_AT_FIRST = 2.0
"""The first batches of a run pay for what is compiled and loaded once, so they are forgotten
sooner: of n values the one before counts n / (n + this), until that is `FORGETTING`."""
OUTLIER_SCALES = 3.0
"""A value this many typical errors off the line counts less, in proportion."""
SPREAD_MIN = 0.02
"""The relative variance of sizes from which on their slope is taken from the data."""
FIXED_SHARE_AT_FIRST = 0.5
"""The part of the cost that counts as fixed while all batches were of one size."""
ERROR_MEMORY = 0.9


class Line(msgspec.Struct, frozen=True):
    """Cost = fixed + slope x size, neither of them negative."""

    fixed: float
    slope: float

    def at(self, size: float) -> float:
        return self.fixed + self.slope * size


class FittedLine:
    """Weighted least squares over all values, each counting less with every later one.

    Robust: a value far off the line has its weight cut, by the error that is usual. When costs
    change for good the usual error grows with them, so the line follows within some ten batches.
    While sizes hardly differ the slope stays as it was and only the fixed part is fitted.

    A first batch of a few rows says nothing of what a row costs, least of all in a JVM that was
    just started: its slope is taken as if it had had `usual_size` at least.
    """

    def __init__(self, usual_size: float) -> None:
        self._usual_size = usual_size
        self._weight = self._x = self._y = self._xx = self._xy = 0.0
        self._error: float | None = None
        self.values = 0
        self.line = Line(0.0, 0.0)

    def add(self, size: float, cost: float) -> None:
        weight = self._weight_of(abs(cost - self.line.at(size))) if self.values else 1.0
        kept = min(FORGETTING, self.values / (self.values + FORGETTING_AT_FIRST))
        self._weight = self._weight * kept + weight
        self._x = self._x * kept + weight * size
        self._y = self._y * kept + weight * cost
        self._xx = self._xx * kept + weight * size * size
        self._xy = self._xy * kept + weight * size * cost
        self.values += 1
        self.line = self._fit()

    def _weight_of(self, error: float) -> float:
        """1 for a value as near to the line as usual, less for one that is further off."""
        usual = self._error
        self._error = error if usual is None else ERROR_MEMORY * usual + (1 - ERROR_MEMORY) * error
        if usual is None or usual <= 0.0 or error <= OUTLIER_SCALES * usual:
            return 1.0
        return OUTLIER_SCALES * usual / error

    def _fit(self) -> Line:
        mean_x, mean_y = self._x / self._weight, self._y / self._weight
        variance = self._xx / self._weight - mean_x * mean_x
        if mean_x > 0.0 and variance > SPREAD_MIN * mean_x * mean_x:
            slope = (self._xy / self._weight - mean_x * mean_y) / variance
        elif self.values > 1:
            slope = self.line.slope
        else:
            slope = (1 - FIXED_SHARE_AT_FIRST) * mean_y / max(mean_x, self._usual_size)
        steepest = mean_y / mean_x if mean_x > 0.0 else 0.0
        slope = min(max(slope, 0.0), max(steepest, 0.0))
        return Line(max(mean_y - slope * mean_x, 0.0), slope)
