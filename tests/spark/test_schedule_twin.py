"""The plug-in's order of task sets answers every vector as its Python twin does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "schedule.json").read_text())


def test_the_plug_in_orders_task_sets_in_the_same_way(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    for vector in VECTORS:
        answer = json.loads(jvm.penstock.testing.SchedulePlay.answer(json.dumps(vector)))
        assert answer["order"] == vector["order"], vector["name"]
        assert answer["weights"] == pytest.approx(vector["weights"], abs=1e-12), vector["name"]


def test_an_order_of_ours_without_pools_is_refused_in_a_sentence(spark: SparkSession) -> None:
    jvm: Any = spark._jvm

    def refusal(**settings: str) -> str:
        keys = {"schedule": "spark.penstock.schedule", "mode": "spark.scheduler.mode"}
        named = {keys[name]: value for name, value in settings.items()}
        return str(jvm.penstock.testing.SchedulePlay.refusal(json.dumps(named)))

    assert "schedule is edf, which needs a scheduler with pools" in refusal(schedule="edf")
    assert "mode is FIFO; set that to FAIR" in refusal(schedule="rdas", mode="FIFO")
    assert "it takes edf, rdas, fifo, fair, spark" in refusal(schedule="soon", mode="FAIR")
    for settings in ({}, {"schedule": "spark"}, {"mode": "FIFO"}):
        assert refusal(**settings) == ""
    assert refusal(schedule="fair", mode="FAIR") == ""
