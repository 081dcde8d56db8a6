"""Estimators held against batches: all of the same ones, and none of a batch it has learned."""

from __future__ import annotations

import pytest

from penstock_lab.experiment.estimates import estimates_off
from penstock_lab.experiment.visible_rows import Span


def span(batch: int, rows: int, took_ms: float, predicted_ms: float | None) -> Span:
    return Span(batch, 0.0, took_ms, rows, rows * 50, predicted_ms=predicted_ms)


def test_a_fixed_cost_is_an_error_of_a_mean_throughput_and_not_of_ours() -> None:
    # 100 ms and 1 ms a row: rows alternate between 100 and 900.
    sizes = [100, 900] * 10
    off = estimates_off(
        [span(n, rows, 100.0 + rows, 100.0 + rows) for n, rows in enumerate(sizes)], 2
    )
    assert off["ours"] == 0.0
    assert off["zstream"] > 0.05
    assert off["lmstream"] > 0.05


def test_an_error_is_a_share_of_what_the_batch_took() -> None:
    off = estimates_off([span(n, 100, 200.0, 250.0) for n in range(6)], 2)
    assert off["ours"] == pytest.approx(0.25)
    assert off["zstream"] == pytest.approx(0.0)


def test_batches_without_rows_or_without_a_prediction_are_left_out() -> None:
    spans = [span(n, 100, 200.0, 200.0) for n in range(4)]
    spans += [span(4, 0, 150.0, 1.0), span(5, 100, 200.0, None)]
    assert estimates_off(spans, 2)["ours"] == 0.0
    assert estimates_off([span(n, 100, 200.0, None) for n in range(9)], 2) == {}
