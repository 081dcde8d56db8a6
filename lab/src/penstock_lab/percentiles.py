"""Percentiles, computed one way everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Numbers: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def percentile(values: Sequence[float] | Numbers, share: float) -> float | None:
    """The smallest value that at least `share` percent of them do not exceed; None of nothing.

    Always one of the values: a percentile between two measurements was never measured.
    """
    numbers = np.asarray(values, np.float64)
    if not numbers.size:
        return None
    return float(np.percentile(numbers, share, method="inverted_cdf"))


def median(values: Sequence[float] | Numbers) -> float | None:
    return percentile(values, 50)
