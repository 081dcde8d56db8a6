"""Latencies are weighed by rows, and rows that were never visible are missed."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.simulate.outcome import Latencies, QueryOutcome


def test_percentiles_weigh_rows_and_are_always_one_of_the_latencies() -> None:
    latencies = Latencies(np.array([30.0, 10.0, 20.0]), np.array([1.0, 97.0, 2.0]))
    assert latencies.percentile_ms(50) == 10
    assert latencies.percentile_ms(97) == 10
    assert latencies.percentile_ms(98) == 20
    assert latencies.percentile_ms(100) == 30
    assert latencies.mean_ms == pytest.approx((97 * 10 + 40 + 30) / 100)
    curve = latencies.curve(10)
    assert curve[0] == 10
    assert curve[-1] == 30
    assert curve == sorted(curve)


def test_of_nothing_every_figure_is_zero() -> None:
    nothing = Latencies.joined([])
    assert (nothing.mean_ms, nothing.percentile_ms(95), nothing.curve()) == (0.0, 0.0, [])


def test_throughput_counts_visible_rows_per_second_of_batch_time() -> None:
    query = QueryOutcome("q", 100.0, Latencies.joined([]), 100, 20, 30, 4, 1, 2_000.0, 0.0, 0.0)
    assert query.throughput == 40
    assert query.miss_ratio == 0.3
