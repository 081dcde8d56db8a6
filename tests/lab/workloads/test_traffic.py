"""Schedules: rows add up, and every row has one time at which it should be sent."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import BadCall
from penstock_lab.workloads.traffic import Burst, Constant, RandomNormal, Schedule, stamped

SCHEDULES = st.one_of(
    st.builds(Constant, rate=st.integers(1, 50_000), tick_us=st.integers(1_000, 50_000)),
    st.builds(
        RandomNormal,
        rate=st.integers(500, 20_000),
        deviation=st.integers(0, 20_000),
        period_us=st.integers(50_000, 2_000_000),
        seed=st.integers(0, 9),
        tick_us=st.integers(1_000, 50_000),
    ),
    st.builds(
        Burst,
        rate=st.integers(1, 5_000),
        factor=st.floats(0, 20),
        every_us=st.integers(200_000, 5_000_000),
        length_us=st.integers(0, 199_999),
        tick_us=st.integers(1_000, 50_000),
    ),
)


@settings(deadline=None)
@given(SCHEDULES, st.integers(0, 3_000), st.integers(0, 50))
def test_the_rows_of_single_ticks_sum_up_to_the_rows_of_the_run(
    schedule: Schedule, tick: int, ticks: int
) -> None:
    rows = [schedule.rows_in(due_tick) for due_tick in range(tick, tick + ticks)]
    assert min(rows, default=0) >= 0
    assert sum(rows) == schedule.rows_before(tick + ticks) - schedule.rows_before(tick)


@settings(deadline=None)
@given(SCHEDULES, st.integers(0, 20_000))
def test_a_row_is_sent_in_the_tick_that_carries_it(schedule: Schedule, row: int) -> None:
    tick = schedule.tick_of(row)
    assert schedule.rows_before(tick) <= row < schedule.rows_before(tick + 1)
    assert schedule.intended_send_us(row) == tick * schedule.tick_us


@settings(deadline=None)
@given(SCHEDULES, st.integers(0, 10_000), st.integers(0, 40), st.integers(0, 300))
def test_the_times_of_many_rows_are_those_of_each(
    schedule: Schedule, first: int, count: int, step: int
) -> None:
    rows = first + step * np.arange(count, dtype=np.int64)
    each = [schedule.intended_send_us(int(row)) for row in rows]
    assert schedule.intended_sends_us(rows).tolist() == each


def test_a_constant_schedule_keeps_its_rate_to_less_than_a_row() -> None:
    schedule = Constant(rate=1_501, tick_us=7_000)
    for tick in range(0, 10_000, 37):
        assert 0 <= tick * 0.007 * 1_501 - schedule.rows_before(tick) < 1


def test_random_traffic_has_the_mean_and_deviation_it_was_given() -> None:
    drawn = RandomNormal(rate=1_000, deviation=200).drawn(20_000)
    assert abs(drawn.mean() - 1_000) < 5
    assert abs(drawn.std() - 200) < 5
    within = np.mean(np.abs(drawn - 1_000) < 200)
    assert abs(within - 0.683) < 0.02


def test_random_traffic_is_even_within_a_second_and_differs_between_seconds() -> None:
    schedule = RandomNormal(rate=1_000, deviation=200, tick_us=20_000)
    seconds = [
        [schedule.rows_in(50 * second + tick) for tick in range(50)] for second in range(100)
    ]
    assert all(max(ticks) - min(ticks) <= 1 for ticks in seconds)
    assert [sum(ticks) for ticks in seconds] == schedule.drawn(100).tolist()
    assert len({sum(ticks) for ticks in seconds}) > 50


def test_random_traffic_slower_than_a_row_a_period_still_sends() -> None:
    schedule = RandomNormal(rate=2, deviation=0, period_us=100_000)
    assert schedule.rows_by(60_000_000) == 120


def test_random_traffic_is_the_same_whatever_was_asked_before() -> None:
    late = RandomNormal(seed=3).rows_by(5_000 * 1_000_000)
    assert late == int(RandomNormal(seed=3).drawn(5_000).sum())
    assert late != RandomNormal(seed=4).rows_by(5_000 * 1_000_000)


def test_a_burst_ends_every_cycle() -> None:
    # rate  1,000      1,000      10,000 | 1,000 ...
    #       |----------|----------|------|
    #       0 s        1 s        2 s    3 s
    schedule = Burst(rate=1_000, factor=10, every_us=3_000_000, length_us=1_000_000)
    by_second = [schedule.rows_by(second * 1_000_000) for second in range(8)]
    sent = [later - sooner for sooner, later in pairwise(by_second)]
    assert sent == [1_000, 1_000, 10_000, 1_000, 1_000, 10_000, 1_000]


def test_a_factor_of_zero_is_a_pause() -> None:
    schedule = Burst(rate=1_000, factor=0, every_us=2_000_000, length_us=1_000_000)
    assert schedule.rows_by(1_000_000) == schedule.rows_by(2_000_000) == 1_000
    assert schedule.intended_send_us(1_000) == 2_000_000


def test_stamped_rows_carry_their_intended_send_time_last() -> None:
    rows = pa.RecordBatch.from_pydict({"a": [1, 2]})
    assert stamped(rows, np.array([5, 7])).schema.names == ["a", "sent_at"]
    assert stamped(rows, 5).column("sent_at").cast(pa.int64()).to_pylist() == [5, 5]


@pytest.mark.parametrize(("rate", "tick_us"), [(0, 20_000), (1_000, 0)])
def test_a_schedule_that_sends_nothing_is_refused(rate: int, tick_us: int) -> None:
    with pytest.raises(BadCall, match="give a"):
        Constant(rate=rate, tick_us=tick_us)


def test_a_burst_longer_than_its_cycle_is_refused() -> None:
    with pytest.raises(BadCall, match="shorter than its cycle"):
        Burst(every_us=1_000_000, length_us=1_000_000)


def test_a_period_shorter_than_a_tick_is_refused() -> None:
    with pytest.raises(BadCall, match="no shorter than a tick"):
        RandomNormal(period_us=10_000, tick_us=20_000)
