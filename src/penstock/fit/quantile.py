"""Quantiles of the last values of something, newer ones counting more."""

from __future__ import annotations

from collections import deque

KEPT_MAX = 96
FORGETTING = 0.97
"""The weight of a value against that of the next one: after 23 values it counts half."""


class RecentValues:
    """The last values, bounded; a quantile weighs each by its age, so that a rare outlier moves the
    high quantiles only while there are others like it."""

    def __init__(self, kept_max: int = KEPT_MAX, forgetting: float = FORGETTING) -> None:
        self._values: deque[float] = deque(maxlen=kept_max)
        self._forgetting = forgetting
        self._ranked: list[tuple[float, float]] | None = None

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: float) -> None:
        self._values.append(value)
        self._ranked = None

    @property
    def last(self) -> float | None:
        return self._values[-1] if self._values else None

    def quantile(self, share: float, default: float = 0.0) -> float:
        """The least value that values with `share` of the weight do not exceed."""
        if not self._values:
            return default
        ranked = self._rank()
        wanted = share * ranked[-1][1]
        for value, weight_so_far in ranked:
            if weight_so_far >= wanted - 1e-12:
                return value
        return ranked[-1][0]

    def _rank(self) -> list[tuple[float, float]]:
        if self._ranked is None:
            newest = len(self._values) - 1
            weighted = sorted(
                (value, self._forgetting ** (newest - index))
                for index, value in enumerate(self._values)
            )
            total, self._ranked = 0.0, []
            for value, weight in weighted:
                total += weight
                self._ranked.append((value, total))
        return self._ranked
