"""The plug-in writes pipelines and reports, and reads plans, as the server has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "device_plans.json").read_text())


@pytest.fixture(scope="module")
def play(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.penstock.testing.PlanPlay


def test_a_pipeline_is_written_as_the_server_reads_it(play: Any) -> None:
    for vector in VECTORS["pipelines"]:
        assert json.loads(play.pipeline(json.dumps(vector))) == vector


def test_a_plan_is_read_with_all_that_the_server_says_and_leaves_out(play: Any) -> None:
    left_out = {"policy": "ours", "is_probe": False, "must_not_fall_back": False, "bytes": 0}
    for vector in VECTORS["plans"]:
        plan = json.loads(play.plan(json.dumps({"plan": vector, "is_cut": True})))
        assert plan == {**left_out, "operations": [], **vector}
    assert play.plan('{"is_cut": true}') == ""
    assert play.plan('{"plan": null}') == ""


def test_the_answers_of_workers_are_summed_over_tasks(play: Any) -> None:
    for vector in VECTORS["reports"]:
        report = json.loads(play.report(json.dumps(vector)))
        expected = dict(vector["report"])
        assert report.pop("worker_ms") == pytest.approx(expected.pop("worker_ms"))
        assert report == expected
