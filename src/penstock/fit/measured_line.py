"""A line through measurements that are all there at once: least squares of relative errors."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.fit.line import Line

COST_MIN = 1e-6


def measured_line(points: Iterable[tuple[float, float]]) -> Line:
    """The line nearest to pairs of size and cost, relative to the cost, so that small sizes count
    as much as large ones; neither part is negative. Without a pair it is zero."""
    # In units of each cost: fixed * x + slope * y is to be 1.
    scaled = [(1.0 / max(cost, COST_MIN), size / max(cost, COST_MIN)) for size, cost in points]
    if not scaled:
        return Line(0.0, 0.0)
    xx = sum(x * x for x, _ in scaled)
    xy = sum(x * y for x, y in scaled)
    yy = sum(y * y for _, y in scaled)
    x_sum, y_sum = sum(x for x, _ in scaled), sum(y for _, y in scaled)
    determinant = xx * yy - xy * xy
    if determinant <= 1e-9 * xx * yy:
        return Line(x_sum / xx, 0.0)
    fixed = (x_sum * yy - y_sum * xy) / determinant
    slope = (y_sum * xx - x_sum * xy) / determinant
    if slope < 0.0:
        return Line(x_sum / xx, 0.0)
    if fixed < 0.0:
        return Line(0.0, y_sum / yy)
    return Line(fixed, slope)
