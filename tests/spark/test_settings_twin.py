"""The plug-in's keys, defaults, units and bounds are those that settings/plugin.py describes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.settings.plugin import PREFIX

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "settings.json").read_text())


def by_key(settings: list[dict[str, Any]], *, of_session: bool) -> dict[str, dict[str, Any]]:
    """Settings of the session, or options of one source or sink, by their key."""
    return {
        setting["key"]: {**setting, "default": in_words(setting["default"])}
        for setting in settings
        if setting["key"].startswith(PREFIX) == of_session
    }


def in_words(default: object) -> str | None:
    """A default as it would be given: whether it is a number or a text is not compared."""
    if default is None:
        return None
    return str(default).lower() if isinstance(default, bool) else str(default)


def printed_by_the_plug_in(spark: SparkSession) -> list[dict[str, Any]]:
    jvm: Any = spark._jvm
    printed: list[dict[str, Any]] = json.loads(jvm.penstock.testing.SettingsVector.print())
    assert len({setting["key"] for setting in printed}) == len(printed)
    return printed


def test_the_plug_in_has_the_same_settings(spark: SparkSession) -> None:
    printed = by_key(printed_by_the_plug_in(spark), of_session=True)
    assert printed == by_key(VECTOR, of_session=True)


def test_the_plug_in_has_the_same_options(spark: SparkSession) -> None:
    printed = by_key(printed_by_the_plug_in(spark), of_session=False)
    assert printed == by_key(VECTOR, of_session=False)
