"""A line learned from a prior: costs over sizes of many magnitudes, where relative errors count."""

from __future__ import annotations

from penstock.fit.line import Line

FORGETTING = 0.97
"""The weight of a value against that of the next one: after 23 values it counts half."""
CHANGE = 0.25
CHANGE_VALUES = 3
FORGETTING_OLD = 0.6
"""The same after so many values in a row that are off by `CHANGE` or more to one side: costs have
changed for good."""
HOLD = 0.01
"""The pull towards the line as it is, against a weight of 1 for each value: it decides where the
values say nothing, as on the slope while all sizes are the same."""
STEP_MIN, STEP_MAX = 0.1, 10.0
"""The factors by which a part of a line shrinks or grows at most at once, so that it can come
back."""
OUTLIER_SCALES = 3.0
"""A value this many usual errors off the line counts less, in proportion."""
USUAL_AT_FIRST = 1.0
USUAL_STEP = 1.3
USUAL_MIN, USUAL_MAX = 0.01, 10.0
FIXED_MIN, FIXED_MAX = 1e-3, 1e12
SLOPE_MIN, SLOPE_MAX = 1e-10, 1e3
VALUE_MIN = 1e-3
FEW_VALUES = 8
"""Up to so many values a lower one counts more: what disturbs a measurement makes it longer, and
the first of a few may be a disturbed one."""
LOW_WEIGHT_MAX = 25.0
SHAPE = 4.0
"""The pull towards changing both parts of the line alike, divided by the values: two or three of
them, one disturbed, would else bend it to anything."""


class LearnedLine:
    """Least squares over relative errors, each value counting less with every later one.

    Robust: the usual error follows the median of errors, up or down a step with each value, and a
    value that is several times as far off counts less. So outliers hardly move the line, while a
    change for good is followed within some ten.

    Until anything is measured the line is its prior. The first value scales all of it: a machine
    that takes twice as long for one size does so for the others, as far as one knows. A prior that
    was itself learned, from `values`, is not scaled by a single one.
    """

    def __init__(self, prior: Line, values: int = 0) -> None:
        self.line = _within(prior.fixed, prior.slope)
        self.values = values
        self._is_scaled = values > 0
        self._usual = USUAL_AT_FIRST
        self._row = 0
        # Sums in units of the line: with x the parts of a cost that are fixed and by size, and t
        # the cost, both against what the line says.
        self._xx = self._xy = self._yy = self._xt = self._yt = 0.0

    def add(self, size: float, cost: float) -> None:
        """Take one value in."""
        cost = max(cost, VALUE_MIN)
        if not self._is_scaled:
            factor = cost / self.line.at(size)
            self.line = _within(self.line.fixed * factor, self.line.slope * factor)
            self._is_scaled = True
        expected = self.line.at(size)
        x, y, t = self.line.fixed / expected, self.line.slope * size / expected, cost / expected
        kept, weight = self._kept(t), self._weight(t)
        self._xx = kept * self._xx + weight * x * x
        self._xy = kept * self._xy + weight * x * y
        self._yy = kept * self._yy + weight * y * y
        self._xt = kept * self._xt + weight * x * t
        self._yt = kept * self._yt + weight * y * t
        self.values += 1
        self._fit()

    def _kept(self, cost: float) -> float:
        """The weight that older values keep; `cost` is in units of the line."""
        side = 0 if abs(cost - 1.0) < CHANGE else 1 if cost > 1.0 else -1
        self._row = self._row + side if self._row * side >= 0 and side else side
        return FORGETTING_OLD if abs(self._row) >= CHANGE_VALUES else FORGETTING

    def _weight(self, cost: float) -> float:
        """1 for a value as near to the line as usual, less for one that is further off; `cost` is
        in units of the line."""
        usual, error = self._usual, abs(cost - 1.0)
        step = USUAL_STEP if error > usual else 1 / USUAL_STEP
        self._usual = min(max(usual * step, USUAL_MIN), USUAL_MAX)
        weight = 1.0 if error <= OUTLIER_SCALES * usual else OUTLIER_SCALES * usual / error
        if self.values < FEW_VALUES:
            weight *= min(1.0 / cost**2, LOW_WEIGHT_MAX)
        return weight

    def _fit(self) -> None:
        """Move to the line with the least sum of squared relative errors, neither of its parts
        negative: the factors by which its parts change, and sums in units of the new line."""
        shape = SHAPE / self.values
        a, b, c = self._xx + HOLD + shape, self._xy - shape, self._yy + HOLD + shape
        right_a, right_b = self._xt + HOLD, self._yt + HOLD
        determinant = a * c - b * b
        of_fixed = (right_a * c - right_b * b) / determinant
        of_slope = (right_b * a - right_a * b) / determinant
        if of_fixed < STEP_MIN:
            of_fixed, of_slope = STEP_MIN, (right_b - b * STEP_MIN) / c
        elif of_slope < STEP_MIN:
            of_fixed, of_slope = (right_a - b * STEP_MIN) / a, STEP_MIN
        before = self.line
        self.line = _within(
            before.fixed * min(max(of_fixed, STEP_MIN), STEP_MAX),
            before.slope * min(max(of_slope, STEP_MIN), STEP_MAX),
        )
        self._rescale(self.line.fixed / before.fixed, self.line.slope / before.slope)

    def _rescale(self, of_fixed: float, of_slope: float) -> None:
        """The sums after the parts of the line have changed. Errors are relative to the line, so
        old values keep their weight against new ones when costs grow or shrink."""
        weight = self._xx + 2 * self._xy + self._yy
        if weight <= 0.0:
            return
        # The factor of the line as a whole at the sizes that were seen.
        x, y = self._xx + self._xy, self._xy + self._yy
        factor = (of_fixed * x + of_slope * y) / weight
        self._xx *= of_fixed * of_fixed / factor**2
        self._xy *= of_fixed * of_slope / factor**2
        self._yy *= of_slope * of_slope / factor**2
        self._xt *= of_fixed / factor**2
        self._yt *= of_slope / factor**2


def _within(fixed: float, slope: float) -> Line:
    return Line(
        min(max(fixed, FIXED_MIN), FIXED_MAX),
        min(max(slope, SLOPE_MIN), SLOPE_MAX),
    )
