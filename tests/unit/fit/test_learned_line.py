"""A line learned from a prior: one value, many sizes, outliers, and costs that change."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.fit.learned_line import LearnedLine
from penstock.fit.line import Line

TRUE = Line(0.5, 2e-6)


def learn(learned: LearnedLine, values: int, luck: random.Random, noise: float = 0.1) -> None:
    for _ in range(values):
        size = luck.lognormvariate(12.0, 1.5)
        learned.add(size, TRUE.at(size) * luck.lognormvariate(0.0, noise))


def test_the_first_value_scales_the_whole_prior() -> None:
    learned = LearnedLine(Line(1.0, 1e-6))
    learned.add(1e6, 20.0)
    assert learned.line.fixed == pytest.approx(10.0)
    assert learned.line.slope == pytest.approx(1e-5)


@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("part", ["fixed", "slope", "both"])
def test_a_line_is_found_from_a_prior_that_is_far_off(part: str, factor: float) -> None:
    prior = Line(
        TRUE.fixed * (factor if part != "slope" else 1.0),
        TRUE.slope * (factor if part != "fixed" else 1.0),
    )
    learned = LearnedLine(prior)
    learn(learned, 60, random.Random(1))
    assert learned.line.fixed == pytest.approx(TRUE.fixed, rel=0.25)
    assert learned.line.slope == pytest.approx(TRUE.slope, rel=0.25)


def test_one_size_alone_leaves_the_proportions_of_the_prior() -> None:
    learned = LearnedLine(Line(1.0, 1e-5))
    for _ in range(50):
        learned.add(1e5, 4.0)
    assert learned.line.at(1e5) == pytest.approx(4.0, rel=0.01)
    assert learned.line.fixed == pytest.approx(2.0, rel=0.05)


def test_outliers_hardly_move_a_line() -> None:
    luck = random.Random(2)
    learned = LearnedLine(TRUE)
    for number in range(100):
        size = luck.lognormvariate(12.0, 1.5)
        learned.add(size, TRUE.at(size) * (20.0 if number % 10 == 9 else 1.0))
    for size in (1e4, 1e5, 1e6):
        assert learned.line.at(size) == pytest.approx(TRUE.at(size), rel=0.1)


def test_a_change_for_good_is_followed_within_some_ten_values() -> None:
    luck = random.Random(3)
    learned = LearnedLine(TRUE)
    learn(learned, 100, luck)
    for _ in range(12):
        size = luck.lognormvariate(12.0, 1.5)
        learned.add(size, 0.3 * TRUE.at(size))
    assert learned.line.at(2e5) == pytest.approx(0.3 * TRUE.at(2e5), rel=0.25)
    for _ in range(15):
        size = luck.lognormvariate(12.0, 1.5)
        learned.add(size, 3.0 * TRUE.at(size))
    assert learned.line.at(2e5) == pytest.approx(3.0 * TRUE.at(2e5), rel=0.3)


def test_of_the_first_two_values_the_lower_counts_more() -> None:
    learned = LearnedLine(TRUE)
    learned.add(1e5, 5.0 * TRUE.at(1e5))
    learned.add(1e5, TRUE.at(1e5))
    assert learned.line.at(1e5) == pytest.approx(TRUE.at(1e5), rel=0.25)


@given(
    st.lists(
        st.tuples(st.floats(0, 1e12, allow_nan=False), st.floats(0, 1e12, allow_nan=False)),
        max_size=40,
    )
)
def test_no_values_make_a_line_negative_or_undefined(values: list[tuple[float, float]]) -> None:
    learned = LearnedLine(Line(1.0, 1e-6))
    for size, cost in values:
        learned.add(size, cost)
        assert 0 < learned.line.fixed < float("inf")
        assert 0 < learned.line.slope < float("inf")
