"""Estimators: the papers' means, our two lines, and what they make of outliers and change."""

from __future__ import annotations

import random

import pytest

from penstock.admission.estimate.ours import OurEstimator
from penstock.admission.estimate.papers import LmStreamEstimator, ZStreamEstimator
from penstock.fit.line import FittedLine
from penstock.fit.quantile import RecentValues
from support.admission.books import cost_of


def test_the_papers_take_different_means() -> None:
    zstream, lmstream = ZStreamEstimator(), LmStreamEstimator()
    assert zstream.predict(1, None, 2) is None
    for estimator in (zstream, lmstream):
        estimator.learn(cost_of(1_000, 100.0))
        estimator.learn(cost_of(3_000, 200.0))
        estimator.learn(cost_of(0, 500.0, has_data=False))
    # (10 + 15) / 2 = 12.5 rows/ms against 4,000 / 300 = 13.3
    by_mean_of_ratios = zstream.predict(5_000, None, 2)
    by_ratio_of_sums = lmstream.predict(5_000, None, 2)
    assert by_mean_of_ratios is not None
    assert by_ratio_of_sums is not None
    assert by_mean_of_ratios.ms_p50 == pytest.approx(400.0)
    assert by_ratio_of_sums.ms_p50 == pytest.approx(375.0)


def test_the_history_of_the_papers_is_bounded() -> None:
    lmstream = LmStreamEstimator()
    for _ in range(256):
        lmstream.learn(cost_of(1_000, 100.0))
    for _ in range(256):
        lmstream.learn(cost_of(1_000, 200.0))
    predicted = lmstream.predict(1_000, None, 2)
    assert predicted is not None
    assert predicted.ms_p50 == pytest.approx(200.0)


def test_a_line_is_found_again_from_batches_of_many_sizes() -> None:
    rng = random.Random(1)
    fitted = FittedLine(1)
    for _ in range(60):
        size = rng.randrange(100, 10_000)
        fitted.add(size, (80 + 0.02 * size) * rng.uniform(0.95, 1.05))
    assert fitted.line.fixed == pytest.approx(80, rel=0.15)
    assert fitted.line.slope == pytest.approx(0.02, rel=0.1)


def test_an_outlier_hardly_moves_a_line_and_a_change_for_good_does() -> None:
    rng = random.Random(2)
    fitted = FittedLine(1)

    def batch(factor: float) -> None:
        size = rng.randrange(100, 10_000)
        fitted.add(size, factor * (80 + 0.02 * size) * rng.uniform(0.95, 1.05))

    for _ in range(60):
        batch(1.0)
    batch(20.0)
    assert fitted.line.at(5_000) == pytest.approx(180, rel=0.15)
    for _ in range(40):
        batch(3.0)
    assert fitted.line.at(5_000) == pytest.approx(540, rel=0.15)


def test_the_first_batches_of_a_run_are_soon_forgotten() -> None:
    fitted = FittedLine(1)
    for size, cost in ((1_000, 3_000.0), (2_000, 900.0)):  # classes are loaded, code is compiled
        fitted.add(size, cost)
    for index in range(8):
        fitted.add(1_000 * (1 + index % 3), 100.0 + 10 * (1 + index % 3))
    assert fitted.line.at(2_000) < 250


def test_while_all_batches_have_one_size_half_of_the_cost_counts_as_fixed() -> None:
    fitted = FittedLine(1)
    for _ in range(5):
        fitted.add(1_000, 200.0)
    assert fitted.line.at(1_000) == pytest.approx(200.0)
    assert fitted.line.fixed == pytest.approx(100.0)


def test_a_first_batch_of_a_few_rows_does_not_make_a_row_dear() -> None:
    ours = OurEstimator()
    ours.learn(cost_of(4, 3_000.0, 2_000.0))  # a JVM that has just started
    of_a_thousand = ours.predict(1_000, None, 2)
    assert of_a_thousand is not None
    assert 3_000 <= of_a_thousand.ms_p50 < 2 * 3_000


def test_ours_divides_tasks_by_the_cores_and_nothing_else() -> None:
    ours = OurEstimator()
    for rows in (1_000, 2_000, 3_000, 4_000) * 3:
        core_ms = 40 + 0.1 * rows
        ours.learn(cost_of(rows, 90 + core_ms / 2, core_ms))
    on_two, on_one = ours.predict(2_000, None, 2), ours.predict(2_000, None, 1)
    assert on_two is not None
    assert on_one is not None
    assert on_two.core_ms == pytest.approx(240, abs=1)
    assert on_two.ms_p50 == pytest.approx(90 + 120, abs=2)
    assert on_one.ms_p50 == pytest.approx(90 + 240, abs=2)


def test_the_middle_is_that_of_skewed_times_and_follows_a_jvm_that_gets_faster() -> None:
    rng = random.Random(6)
    ours = OurEstimator()
    for number in range(80):
        warm = 1 + 4 * 0.9**number
        spike = 4.0 if number % 6 == 5 else 1.0
        rows = rng.randrange(900, 1_100)
        ours.learn(cost_of(rows, 200 * warm * spike * rng.uniform(0.95, 1.05)))
    predicted = ours.predict(1_000, None, 2)
    assert predicted is not None
    assert predicted.ms_p50 == pytest.approx(200, rel=0.15)  # the mean is 300
    assert predicted.ms_high > 500


def test_time_in_the_queue_is_no_cost() -> None:
    ours = OurEstimator()
    for rows in (1_000, 2_000) * 5:
        ours.learn(cost_of(rows, 100 + 0.01 * rows + 700, queued_ms=700.0))
    predicted = ours.predict(2_000, None, 2)
    assert predicted is not None
    assert predicted.ms_p50 == pytest.approx(120, abs=1)


def test_batches_without_data_are_kept_apart() -> None:
    ours = OurEstimator()
    ours.learn(cost_of(1_000, 200.0))
    for _ in range(20):
        ours.learn(cost_of(0, 60.0, has_data=False))
    predicted = ours.predict(1_000, None, 2)
    assert predicted is not None
    assert predicted.ms_p50 == pytest.approx(200.0)
    assert ours.without_data_ms() == 60.0


def test_the_high_time_is_exceeded_by_few_batches() -> None:
    rng = random.Random(3)
    ours = OurEstimator()
    exceeded = 0
    for number in range(600):
        rows = rng.randrange(500, 5_000)
        visible_ms = (100 + 0.02 * rows) * rng.lognormvariate(0.0, 0.15)
        predicted = ours.predict(rows, None, 2)
        if predicted is not None and number >= 100:
            exceeded += visible_ms > predicted.ms_high
        ours.learn(cost_of(rows, visible_ms, 0.04 * rows))
    assert 0 < exceeded < 500 * 0.06


def test_the_middle_of_a_high_time_is_its_inverse() -> None:
    rng = random.Random(4)
    ours = OurEstimator()
    for _ in range(50):
        ours.learn(cost_of(1_000, 200 * rng.lognormvariate(0.0, 0.2)))
    assert ours.high(ours.middle_of_high(500.0)) == pytest.approx(500.0)


def test_of_rows_and_bytes_the_one_that_errs_less_is_believed() -> None:
    rng = random.Random(5)
    ours = OurEstimator()
    for number in range(60):
        rows, size_bytes = rng.randrange(100, 1_000), rng.randrange(10_000, 1_000_000)
        cost = cost_of(rows, 50 + size_bytes / 1_000, number=number)
        ours.learn(type(cost)(number, cost.visible_ms, rows, size_bytes, cores=2))
    predicted = ours.predict(500, 400_000, 2)
    assert predicted is not None
    assert predicted.ms_p50 == pytest.approx(450, rel=0.1)


def test_a_source_that_counts_nothing_is_predicted_from_past_times() -> None:
    ours = OurEstimator()
    for visible_ms in (100.0, 110.0, 120.0):
        ours.learn(cost_of(0, visible_ms))
    predicted = ours.predict(None, None, 2)
    assert predicted is not None
    assert (predicted.ms_p50, predicted.ms_high) == (110.0, 120.0)


def test_quantiles_weigh_newer_values_more_and_forget_old_ones() -> None:
    values = RecentValues(kept_max=4, forgetting=0.5)
    assert values.quantile(0.5, default=7.0) == 7.0
    for value in (1.0, 2.0, 3.0, 4.0):
        values.add(value)
    # weights 1/8, 1/4, 1/2, 1
    assert values.quantile(0.5) == 4.0
    assert values.quantile(0.4) == 3.0
    values.add(5.0)
    assert values.quantile(0.0) == 2.0
