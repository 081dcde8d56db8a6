"""The plug-in lists its settings and options, for the Python side to compare with its own."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession


def listed(spark: SparkSession, kind: str) -> dict[str, dict[str, Any]]:
    jvm: Any = spark._jvm
    keys = json.loads(getattr(jvm.penstock.testing.SettingsVector, kind)())
    assert all(set(key) == {"key", "default", "unit", "min", "max"} for key in keys)
    assert len({key["key"] for key in keys}) == len(keys)
    return {key["key"]: key for key in keys}


def test_every_setting_is_listed_with_a_default_within_its_bounds(spark: SparkSession) -> None:
    settings = listed(spark, "settings")
    assert all(name.startswith("spark.penstock.") for name in settings)
    assert settings["spark.penstock.commit.mode"]["default"] == "full"
    assert settings["spark.penstock.commit.awaitCompaction"]["default"] is False
    for key in settings.values():
        numbers = [n for n in (key["min"], key["default"], key["max"]) if isinstance(n, int)]
        assert numbers == sorted(numbers)
        assert key["min"] is None or key["unit"]


def test_every_option_is_listed(spark: SparkSession) -> None:
    options = listed(spark, "options")
    assert "deadline" not in options
    assert options["maxRowsPerTrigger"] == {
        "key": "maxRowsPerTrigger",
        "default": None,
        "unit": "rows",
        "min": 1,
        "max": None,
    }
