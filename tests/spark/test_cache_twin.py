"""The plug-in's orders of eviction and its sketch answer every vector as Python does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "cache.json").read_text())


def test_the_plug_in_evicts_in_the_same_order(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    for vector in VECTORS["eviction"]:
        answer = json.loads(jvm.penstock.testing.CachePlay.victims(json.dumps(vector)))
        assert answer == vector["victims"], vector["name"]


def test_the_plug_in_has_the_same_keys_hot(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    for vector in VECTORS["sketch"]:
        answer = json.loads(jvm.penstock.testing.CachePlay.hot(json.dumps(vector)))
        assert answer == vector["hot"], vector["name"]


def test_the_plug_in_moves_the_threshold_in_the_same_way(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    for vector in VECTORS["threshold"]:
        assert jvm.penstock.testing.CachePlay.tuned(json.dumps(vector)) == vector["tuned"], vector
