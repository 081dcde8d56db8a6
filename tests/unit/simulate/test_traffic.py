"""Arrivals: drawn from a seed, taken in whole appends."""

from __future__ import annotations

import random

import pytest

from penstock.simulate.traffic import (
    BACKLOG_S,
    BURST_FACTOR,
    SHAPES,
    Arrivals,
    Recorded,
    Shape,
    Traffic,
    draw_arrivals,
)


def drawn(shape: Shape, seed: int = 1, rate: float = 1_000.0, seconds: float = 20.0) -> Arrivals:
    return draw_arrivals(Traffic(rate, shape), seconds, random.Random(seed))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_seed_draws_the_same_appends_in_order(shape: Shape) -> None:
    first, second = drawn(shape), drawn(shape)
    assert (first.at_ms, first.rows) == (second.at_ms, second.rows)
    assert first.at_ms == sorted(first.at_ms)
    assert all(rows > 0 for rows in first.rows)
    assert drawn(shape, seed=2).at_ms != first.at_ms


@pytest.mark.parametrize(("shape", "mean"), [("constant", 1_000), ("random", 1_000)])
def test_the_mean_rate_is_the_one_asked_for(shape: Shape, mean: float) -> None:
    arrivals = draw_arrivals(Traffic(1_000, shape), 400, random.Random(3))
    assert sum(arrivals.rows) / 400 == pytest.approx(mean, rel=0.1)


def test_a_burst_is_ten_times_the_rate_for_five_seconds_in_the_middle() -> None:
    arrivals = drawn("bursts", seconds=60)
    burst = sum(
        rows
        for moment, rows in zip(arrivals.at_ms, arrivals.rows, strict=True)
        if 28_000 <= moment < 32_000
    )
    assert burst == pytest.approx(4 * 1_000 * BURST_FACTOR, rel=0.05)


def test_a_backlog_waits_before_anything_else() -> None:
    arrivals = drawn("backlog")
    assert arrivals.waiting_rows(0.0) == 1_000 * BACKLOG_S
    assert arrivals.take(200, 0.0) == (0, 4), "in appends as large as the later ones"


def test_low_traffic_has_a_row_now_and_then() -> None:
    arrivals = drawn("constant", rate=2.0)
    assert set(arrivals.rows) == {1}
    assert len(arrivals) == pytest.approx(40, abs=1)


def test_a_cut_takes_whole_appends_up_to_its_bound_and_one_at_least() -> None:
    arrivals = draw_arrivals(Recorded((0.0, 10.0, 20.0, 30.0), (5, 5, 5, 5)), 1, random.Random(0))
    assert arrivals.oldest_at_ms(20.0) == 0.0
    assert arrivals.waiting_rows(20.0) == 15
    assert arrivals.take(12, 20.0) == (0, 2)
    assert arrivals.take(1, 20.0) == (2, 3), "an append is never split"
    assert arrivals.oldest_at_ms(20.0) is None
    assert arrivals.next_at_ms(20.0) == 30.0
    assert arrivals.take(None, 99.0) == (3, 4)
    assert arrivals.next_at_ms(99.0) is None
