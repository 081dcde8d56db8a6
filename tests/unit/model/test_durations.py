"""Durations as people write them."""

from __future__ import annotations

import pytest

from penstock.errors import BadCall
from penstock.model.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("800ms", 800.0),
        ("2s", 2_000.0),
        (" 1.5 Seconds ", 1_500.0),
        ("10 minutes", 600_000.0),
        ("1h", 3_600_000.0),
        ("1 day", 86_400_000.0),
    ],
)
def test_a_number_and_a_unit_are_a_duration(text: str, milliseconds: float) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "0s", "-1s", "800", "2 weeks", "s", "1e3ms", "nans"])
def test_any_other_text_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadCall, match=r"the deadline '.*' is not a time above 0"):
        parse_duration(text, "deadline")
