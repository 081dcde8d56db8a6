"""Percentiles are measurements, never values in between."""

from __future__ import annotations

from penstock_lab.percentiles import median, percentile


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([1.0, 2.0, 100.0, 200.0], 50) == 2.0
    assert percentile([1.0, 2.0, 100.0, 200.0], 99) == 200.0
    assert percentile([1.0, 2.0], 100) == 2.0


def test_nothing_has_no_median() -> None:
    assert median([]) is None
