"""What is made of sightings: weighed by record, and blind to nothing."""

from __future__ import annotations

import numpy as np
import pytest

from penstock_lab.experiment.latency import (
    EventTime,
    Sighting,
    curve,
    latencies,
    longest_gap_ms,
    past_window_ms,
    row_latencies_ms,
    series,
    slope_ms_per_s,
)

MS = 1_000


def seen(at_ms: int, *sent_ms: int, closed_ms: tuple[int, ...] | None = None) -> Sighting:
    closed = None if closed_ms is None else np.array(closed_ms, np.int64) * MS
    return Sighting(at_ms * MS, np.array(sent_ms, np.int64) * MS, closed)


def test_latency_is_weighed_by_record_not_by_batch() -> None:
    # One batch of 99 rows after 100 ms, one of a single row after 900 ms.
    values = row_latencies_ms([seen(1_100, *[1_000] * 99), seen(2_900, 2_000)], 0)
    summary = latencies(values)
    assert summary is not None
    assert (summary.rows, summary.p50, summary.p99, summary.max) == (100, 100.0, 100.0, 900.0)


def test_rows_sent_in_the_warm_up_do_not_count_whenever_they_are_seen() -> None:
    values = row_latencies_ms([seen(5_000, 900, 1_000, 1_100)], sent_after_us=1_000 * MS)
    assert values.tolist() == [3_900.0]


def test_nothing_seen_has_no_percentiles() -> None:
    assert latencies(row_latencies_ms([], 0)) is None
    assert curve(np.empty(0)) == []


def test_a_window_is_late_from_when_it_could_close() -> None:
    # Event time runs twice as fast as the clock: the window that can close at 14 s of event time
    # can do so 7 s after the start.
    #   started 100 s ... could close 107 s ... seen 107.5 s
    event_time = EventTime(base_us=0, started_us=100_000 * MS, speed=2.0)
    late_ms = past_window_ms([seen(107_500, 105_000, closed_ms=(14_000,))], event_time, 0)
    assert late_ms.tolist() == [500.0]


def test_rows_without_windows_have_no_latency_past_one() -> None:
    assert past_window_ms([seen(1, 0)], EventTime(0, 0, 1.0), 0).size == 0


def test_the_series_has_a_line_for_each_second_that_showed_rows() -> None:
    lines = series([seen(10_100, 10_000), seen(10_900, 10_000), seen(12_500, 12_000)], 10_000 * MS)
    assert [(line.second, line.rows, line.p99_ms) for line in lines] == [
        (0, 2, 900.0),
        (2, 1, 500.0),
    ]


def test_the_curve_goes_from_the_least_to_the_most() -> None:
    percentiles = curve(np.arange(1_000, dtype=np.float64))
    assert (len(percentiles), percentiles[0], percentiles[50], percentiles[-1]) == (
        101,
        0.0,
        499.0,
        999.0,
    )


@pytest.mark.parametrize(
    ("moments_ms", "gap_ms"),
    [
        ([], 10_000.0),
        ([1_000, 2_000, 9_500], 7_500.0),
        ([2_000, 3_000, 4_000], 6_000.0),
        ([-500, 500, 10_500], 9_500.0),
    ],
)
def test_the_longest_gap_counts_both_ends_of_the_stretch(
    moments_ms: list[int], gap_ms: float
) -> None:
    assert longest_gap_ms([moment_ms * MS for moment_ms in moments_ms], 0, 10_000 * MS) == gap_ms


def test_a_system_that_falls_behind_has_a_slope() -> None:
    # Works off 4 of 5 seconds' worth: a row sent at t is seen at t * 1.25.
    behind = [seen(t * 1_250, t * 1_000) for t in range(1, 11)]
    assert slope_ms_per_s(behind, 0) == pytest.approx(250.0)
    steady = [seen(t * 1_000 + 300, t * 1_000) for t in range(1, 11)]
    assert slope_ms_per_s(steady, 0) == pytest.approx(0.0, abs=1e-6)


def test_two_moments_say_nothing_about_a_slope() -> None:
    assert slope_ms_per_s([seen(1_000, 0), seen(2_000, 0)], -1) is None
