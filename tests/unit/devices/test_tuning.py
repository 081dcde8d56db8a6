"""Tuning: Eq. 10 as printed and its fixed point, its bounds, and when a batch is a probe."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.devices.tuning import (
    BYTES_MAX,
    BYTES_MIN,
    PROBE_EVERY,
    PROBE_FROM,
    START_BYTES,
    STEP_MAX,
    PaperTuning,
    Probing,
    TunedBatch,
    is_bearable,
    regress,
)

figures = st.floats(1.0, 1e6)
batches = st.tuples(figures, figures, figures)


@given(st.floats(BYTES_MIN, BYTES_MAX), st.lists(st.tuples(figures, figures), min_size=1), batches)
def test_a_history_with_one_inflection_point_has_one_answer(
    point: float, measured: list[tuple[float, float]], targets: tuple[float, float, float]
) -> None:
    history = tuple(TunedBatch(point, *each) for each in measured)
    assert regress(history, targets[0], targets[1]) == pytest.approx(point)


@given(st.lists(batches, min_size=1, max_size=100), st.none() | st.floats(100.0, 10_000.0))
def test_without_probes_the_inflection_point_stays_at_its_start(
    measured: list[tuple[float, float, float]], slide_ms: float | None
) -> None:
    tuning = PaperTuning()
    for size, processing_ms, latency_ms in measured:
        tuning.batch_done(tuning.inflection_bytes, size, processing_ms, latency_ms, slide_ms)
        assert tuning.inflection_bytes == pytest.approx(START_BYTES)


def test_the_regression_finds_the_plane_that_a_history_lies_on() -> None:
    luck = random.Random(1)
    history = []
    for _ in range(20):
        throughput, latency_ms = luck.uniform(1, 9), luck.uniform(100, 900)
        point = 1_000 + 50 * throughput - 0.5 * latency_ms
        history.append(TunedBatch(point, throughput, latency_ms))
    assert regress(tuple(history), 10.0, 200.0) == pytest.approx(1_400.0)


def test_throughput_and_latency_that_say_the_same_share_their_part() -> None:
    history = tuple(TunedBatch(10.0 * n, float(n), 2.0 * n) for n in range(1, 9))
    assert regress(history, 10.0, 20.0) == pytest.approx(100.0)


def test_the_targets_are_the_best_throughput_and_the_slide_or_the_mean_latency() -> None:
    tuning = PaperTuning(1_000_000.0)
    # Throughputs 2, 2 and 4 on the mean (Eq. 4), with a larger point for the last.
    for point, size, ms, latency_ms in (
        (1_000_000.0, 200.0, 100.0, 300.0),
        (1_000_000.0, 200.0, 100.0, 300.0),
        (1_200_000.0, 800.0, 100.0, 600.0),
    ):
        tuning.batch_done(point, size, ms, latency_ms, None)
    printed = tuning.as_printed(None)
    by_slide = tuning.as_printed(600.0)
    assert by_slide == pytest.approx(1_200_000.0)
    assert 1_000_000.0 < printed < by_slide


@given(st.lists(st.tuples(st.floats(1e3, 1e9), batches), min_size=1, max_size=60))
def test_a_step_and_the_point_itself_are_bounded(
    measured: list[tuple[float, tuple[float, float, float]]],
) -> None:
    tuning = PaperTuning()
    for point, (size, processing_ms, latency_ms) in measured:
        before = tuning.inflection_bytes
        tuning.batch_done(point, size, processing_ms, latency_ms, None)
        assert before / STEP_MAX * 0.999 <= tuning.inflection_bytes <= before * STEP_MAX * 1.001
        assert BYTES_MIN <= tuning.inflection_bytes <= BYTES_MAX


def test_probes_of_the_point_go_above_and_below_in_turn() -> None:
    tuning = PaperTuning()
    assert [tuning.probed_bytes() for _ in range(3)] == [300_000.0, 75_000.0, 300_000.0]
    low = PaperTuning(BYTES_MIN)
    assert [low.probed_bytes() for _ in range(2)] == [2 * BYTES_MIN, BYTES_MIN]


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=400))
def test_of_fifty_batches_in_a_row_at_most_one_is_a_probe(
    choices: list[tuple[bool, bool, bool]],
) -> None:
    probing = Probing()
    probed_at = []
    for number, (wants, has_untried, is_surprise) in enumerate(choices):
        probing.batch_planned()
        if wants and probing.is_due(has_untried=has_untried):
            probing.probed()
            probing.measured(is_surprise=is_surprise)
            probed_at.append(number)
    assert all(at >= PROBE_FROM for at in probed_at)
    gaps = [after - before for before, after in itertools.pairwise(probed_at)]
    assert all(gap >= PROBE_EVERY for gap in gaps)


def test_probes_that_only_confirm_become_rare_and_a_surprise_brings_them_back() -> None:
    def probed_within(batches: int, *, is_surprise: bool) -> list[int]:
        probing = Probing()
        probed_at = []
        for number in range(batches):
            probing.batch_planned()
            if probing.is_due():
                probing.probed()
                probing.measured(is_surprise=is_surprise)
                probed_at.append(number)
        return probed_at

    assert probed_within(1_000, is_surprise=False) == [4, 104, 304, 704]
    assert probed_within(210, is_surprise=True) == [4, 54, 104, 154, 204]


def test_a_probe_takes_no_more_than_a_batch_can_spare() -> None:
    assert is_bearable(1e6, None)
    assert is_bearable(5.0, 5.0)
    assert not is_bearable(5.1, 5.0)
    assert not is_bearable(0.1, -20.0)
    assert not is_bearable(-50.0, -20.0), "to be quicker is only a guess"
    assert is_bearable(5.0, 7.0, 2.0)
    assert not is_bearable(5.0, 7.0, 2.1)
    assert not is_bearable(-50.0, 1.0, 2.0)
