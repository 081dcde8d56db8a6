"""The plug-in reads a duration as the server does."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.errors import BadCall
from penstock.model.durations import parse_duration

TEXTS = (
    *("800ms", "2s", "1.5m", "1h", "1 d", " 3 Seconds ", "1.5 minutes", "0.5ms", "20 millis"),
    *("0s", "-1s", "soon", "800", "1.5.1s", "1w", "", "s", "1 s s"),
)


@pytest.mark.parametrize("text", TEXTS)
def test_both_sides_read_a_duration_alike(spark: SparkSession, text: str) -> None:
    jvm: Any = spark._jvm
    parsed = jvm.penstock.settings.Durations.parse(text)
    try:
        expected = round(parse_duration(text) + 1e-9)
    except BadCall:
        assert parsed.isEmpty()
    else:
        assert parsed.get() == max(expected, 1)
