"""Scans for eviction that could remove nothing are not made, and nothing else differs from Spark.

commits begin at, s          0   4  | 60  62 64 | 200 204
watermark after them, s    -19 -15  | 41  43 45 | 181 185
run with                     ours   |   ours    |  Spark's own store
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.client import Client
from support.spark.evicting_queries import CASES, STOCK, Case, Driver

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "eviction.json").read_text())
PARTS = ((0, 4), (60, 62, 64), (200, 204))
PARTITIONS = 2
PARTITIONS_KEY = "spark.sql.shuffle.partitions"
Fresh = Callable[[str], str]


def test_the_plug_in_knows_of_a_store_what_its_python_twin_does(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    for vector in VECTORS:
        skips = json.loads(jvm.penstock.testing.EvictionPlay.answer(json.dumps(vector)))
        assert skips == vector["skips"], vector["name"]


def drive(driver: Driver, case: Case, *, is_ours: bool) -> None:
    """Two starts, and a third with Spark's own store, whoever's the first two were."""
    for number, commits in enumerate(PARTS):
        ours_now = is_ours and number < len(PARTS) - 1
        frame = (case.ours or case.frame) if ours_now else case.frame
        conf = {**case.conf, PARTITIONS_KEY: str(PARTITIONS), **({} if ours_now else STOCK)}
        driver.run(frame, case.mode, conf, commits)


@pytest.mark.parametrize("name", CASES)
def test_answers_and_state_are_sparks_and_scans_are_made_only_to_remove_rows(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path, name: str
) -> None:
    case = CASES[name]
    ours, theirs = (Driver(spark, client, fresh("evicted"), tmp_path) for _ in range(2))
    drive(theirs, case, is_ours=False)
    drive(ours, case, is_ours=True)
    assert ours.driven.answers == theirs.driven.answers
    assert ours.driven.reported == theirs.driven.reported
    assert ours.state(case.sides) == theirs.state(case.sides)

    counted = {
        batch: (each.counters["eviction scans"], each.counters["eviction scans skipped"])
        for batch, each in ours.driven.ledgers.items()
    }
    with_ours = [batch for batch in ours.driven.reported if batch < ours.driven.firsts[2]]
    quiet = [batch for batch in with_ours if not ours.driven.removed(batch)]
    known = [batch for batch in quiet if batch != ours.driven.firsts[1]]
    assert len(known) >= 2, "the test wants batches in which nothing expires"
    assert {counted[batch] for batch in known} == {(0, PARTITIONS * case.scans)}
    busy = [batch for batch in with_ours if ours.driven.removed(batch)]
    assert busy, "the test wants batches in which rows expire"
    assert all(counted[batch][0] > 0 for batch in busy)
    if case.ours is not None:
        attempts = [
            max(d.driven.ledgers[b].counters["tasks"] for b in busy) for d in (ours, theirs)
        ]
        assert attempts[0] > attempts[1], "the test wants tasks that fail once they have evicted"
    assert ours.driven.notes == {
        f"scans for eviction per partition: {case.scans}, skipped where no row has expired"
    }
    jvm: Any = spark._jvm
    assert jvm.penstock.testing.EvictionPlay.attempts() == 0


def test_a_session_that_leaves_eviction_to_spark_has_no_node_of_ours(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path
) -> None:
    driver = Driver(spark, client, fresh("evicted"), tmp_path)
    conf = {"spark.penstock.eviction": "spark", "spark.penstock.batch.watermark": "spark"}
    driver.run(CASES["times, update"].frame, "update", conf, (0, 60))
    assert all(
        each.counters["eviction scans skipped"] == 0 for each in driver.driven.ledgers.values()
    )
    assert driver.driven.notes == set()
