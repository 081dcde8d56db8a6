"""The plug-in's Release answers every vector as its Python twin does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

SCRIPTS = json.loads((Path(__file__).parents[1] / "vectors" / "release.json").read_text())


@pytest.mark.parametrize("script", SCRIPTS, ids=[script["name"] for script in SCRIPTS])
def test_the_plug_in_releases_in_the_same_order(
    spark: SparkSession, script: dict[str, Any]
) -> None:
    jvm: Any = spark._jvm
    answered = json.loads(jvm.penstock.testing.ReleaseScript.play(json.dumps(script)))
    assert answered == script["steps"]
