"""The plug-in's keys, defaults, units and bounds are those that settings/plugin.py describes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "settings.json").read_text())


@pytest.mark.parametrize("kind", sorted(VECTOR))
def test_the_plug_in_has_the_same_keys(spark: SparkSession, kind: str) -> None:
    jvm: Any = spark._jvm
    printed = json.loads(getattr(jvm.penstock.testing.SettingsVector, kind)())
    assert len({setting["key"] for setting in printed}) == len(printed)
    assert by_key(printed) == by_key(VECTOR[kind])


@pytest.mark.parametrize("kind", sorted(VECTOR))
def test_defaults_lie_within_bounds_and_bounds_have_a_unit(kind: str) -> None:
    for setting in VECTOR[kind]:
        limits = (setting["min"], setting["default"], setting["max"])
        numbers = [number for number in limits if isinstance(number, int)]
        assert numbers == sorted(numbers)
        assert setting["min"] is None or setting["unit"]


def by_key(settings: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Settings by their key: in which order each side lists them is not compared."""
    return {setting["key"]: setting for setting in settings}
