"""The plug-in's controller of prefetching answers every vector as its Python twin does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "prefetch.json").read_text())


def test_the_plug_in_chooses_the_same_places_and_says_why_in_the_same_words(
    spark: SparkSession,
) -> None:
    jvm: Any = spark._jvm
    for vector in VECTORS:
        answers = json.loads(jvm.penstock.testing.ControllerPlay.answer(json.dumps(vector)))
        assert answers == vector["answers"], vector["name"]
