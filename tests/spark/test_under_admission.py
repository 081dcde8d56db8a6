"""Under admission all else stays as it was: a source's own limit, commits behind the next batch, a
prompt stop, and a checkpoint that Spark alone can go on with."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from penstock_lab.experiment.running_query import last_batch
from support.servers.played_admission import PlayedAdmission
from support.servers.processes import START_S, DriverProcess, ServerProcess, wait_until
from support.spark import counting_source
from support.spark.admitted_queries import (
    batches,
    files,
    put_file,
    started_into,
    terms,
    wait_for_questions,
    waiting_offer,
)
from support.spark.failpoints import Points
from support.spark.three_queries.job import active_tasks

COMMIT, SECOND = "before_commit", "batch=1"
HELD_S = 1.0
"""More than a stop takes that waits for nothing, and less than one waits for commits."""
LONG_S = 20.0
"""Far more than a stop takes, and far less than a question may go unanswered."""


@pytest.fixture
def limited(spark: SparkSession) -> str:
    """The name of a source with 20 numbers, which takes a limit of rows and has one of 4."""
    # Spark's Python workers do not find the modules of tests.
    cloudpickle.register_pickle_by_value(counting_source)  # type: ignore[no-untyped-call]
    spark.dataSource.register(counting_source.LimitedSource)
    return counting_source.LimitedSource.name()


def test_a_source_that_takes_a_limit_of_rows_is_cut_by_rows_within_its_own(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    limited: str,
    checkpoint: str,
) -> None:
    rows: list[int] = []
    admission.is_withholding = True
    frame = spark.readStream.format(limited).options(**terms(admission, server)).load()
    query = started_into(frame, checkpoint, rows)
    try:
        wait_for_questions(admission, query, 1)
        offer = admission.asked_for(query.id)[0]["inputs"][0]["offer"]
        assert offer["cuts_by"] == "rows"
        assert "rows" not in offer, "its offsets tell no rows"
        admission.takes[0] = 3
        admission.is_withholding = False
        wait_until("there are batches", lambda: len(rows) >= 6)
        # More than the source's own limit, which counts then.
        admission.takes[0] = 100
        wait_until("all is read", lambda: len(rows) == counting_source.NUMBERS)
        wait_until("all is told of", lambda: sum(taken(query)) == counting_source.NUMBERS)
        assert rows == list(range(counting_source.NUMBERS))
        assert taken(query)[:2] == [3, 3]
        assert counting_source.ROWS_MAX in taken(query)
        assert max(taken(query)) == counting_source.ROWS_MAX
    finally:
        query.stop()


def taken(query: StreamingQuery) -> list[int]:
    return [batch["numInputRows"] for batch in batches(query)]


def test_the_server_bounds_the_first_batches_of_a_source_that_counts_no_rows(
    spark: SparkSession, server: ServerProcess, limited: str, checkpoint: str
) -> None:
    rows: list[int] = []
    frame = spark.readStream.format(limited).option("deadline", "500ms").load()
    query = started_into(frame, checkpoint, rows)
    try:
        wait_until("all is read", lambda: len(rows) == counting_source.NUMBERS)
        decisions = server.client().explain(query.id).decisions
        reasons = [decision.reason for decision in decisions if decision.is_cut]
        assert any("1000 rows at most, as none are counted" in reason for reason in reasons)
    finally:
        query.stop()


@pytest.mark.parametrize("cleaning", ["off", "delete"])
def test_commits_under_admission_are_as_asynchronous_as_without(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    points: Points,
    tmp_path: Path,
    checkpoint: str,
    cleaning: str,
) -> None:
    """A source that may delete what it has read makes commits synchronous, wrapped or not.

    off      batch 1 │ commit held ......
             batch 2   └ computes
    delete   batch 1 │ commit held ......
             batch 2                     └ is not cut before
    """
    folder, rows = tmp_path / "in", list[int]()
    options = terms(admission, server, cleanSource=cleaning)
    # Only the batch of a query with state computes before its own offsets are durable.
    frame = files(spark, folder, options).dropDuplicates(["n"])
    query = started_into(frame, checkpoint, rows)
    try:
        put_file(folder, "first", 0)
        query.processAllAvailable()
        points.hold(COMMIT, [query.id], SECOND)
        put_file(folder, "second", 1)
        wait_until("the commit is held", lambda: points.held(COMMIT, [query.id], SECOND) != {})
        put_file(folder, "third", 2)
        if cleaning == "off":
            wait_until("the next batch is cut", lambda: admission.cuts == 3)
            wait_until("it computes", lambda: active_tasks(spark, str(query.runId)) > 0)
            assert last_batch(query) == 1, "the batch has ended, and its commit has not"
        else:
            time.sleep(0.5)
            assert admission.cuts == 2
            assert last_batch(query) == 0
        assert not Path(checkpoint, "commits", "1").exists()
        points.let_go(COMMIT)
        query.processAllAvailable()
        assert rows == [0, 1, 2]
    finally:
        points.let_go(COMMIT)
        query.stop()


def test_a_stop_waits_for_commits_that_follow_behind(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    points: Points,
    tmp_path: Path,
    checkpoint: str,
) -> None:
    """From files to files, so that no source or sink of ours waits for them.

    batch 1 │ commit held ...... │ goes on
                └ stop() ────────────┴ the commit is in the checkpoint
    """
    folder = tmp_path / "in"
    frame = files(spark, folder, terms(admission, server)).dropDuplicates(["n"])
    writer = frame.writeStream.format("json").option("checkpointLocation", checkpoint)
    query = writer.start(str(tmp_path / "out"))
    going_on = threading.Timer(HELD_S, points.let_go, [COMMIT])
    try:
        put_file(folder, "first", 0)
        query.processAllAvailable()
        points.hold(COMMIT, [query.id], SECOND)
        put_file(folder, "second", 1)
        wait_until("the commit is held", lambda: points.held(COMMIT, [query.id], SECOND) != {})
        going_on.start()
        query.stop()
        assert Path(checkpoint, "commits", "1").exists()
        assert query.exception() is None
    finally:
        going_on.cancel()
        points.let_go(COMMIT)
        query.stop()


def test_a_stop_ends_a_question_about_a_batch_that_is_held(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    tmp_path: Path,
    checkpoint: str,
) -> None:
    folder, rows = tmp_path / "in", list[int]()
    query = started_into(files(spark, folder, terms(admission, server)), checkpoint, rows)
    try:
        put_file(folder, "first", 0)
        query.processAllAvailable()
        admission.is_withholding = True
        put_file(folder, "second", 1)
        waiting_offer(admission, query, "files", 1)
        admission.is_answering.clear()
        wait_for_questions(admission, query, 1)
        asked = len(admission.asked_for(query.id))
        began = time.monotonic()
        query.stop()
        assert time.monotonic() - began < LONG_S
        assert len(admission.asked_for(query.id)) == asked
        assert query.exception() is None
        assert rows == [0]
    finally:
        admission.is_answering.set()
        query.stop()


def test_spark_alone_goes_on_from_a_checkpoint_that_was_made_with_a_deadline(
    spark: SparkSession, server: ServerProcess, tmp_path: Path
) -> None:
    """A folder and a rate source into files; the second run has not even the jar."""
    folder = tmp_path / "input"
    named = {"deadline": "1s", "url": server.url, "token": server.token}
    rate = spark.readStream.format("rate").options(rowsPerSecond="10", **named).load()
    frames = {
        "folder": files(spark, folder, named),
        "rate": rate.select(f.col("value").alias("n")),
    }
    queries = [
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / name / "checkpoint"))
        .start(str(tmp_path / name / "output"))
        for name, frame in frames.items()
    ]
    try:
        for number in range(3):
            put_file(folder, f"part{number}", 2 * number, 2 * number + 1)
            queries[0].processAllAvailable()
        wait_until("both have read", lambda: all(batches(query) for query in queries))
        for query in queries:
            assert batches(query)[-1]["sources"][0]["metrics"]["penstock.policy"] == "deadline"
    finally:
        for query in queries:
            query.stop()
    put_file(folder, "part3", 6, 7)
    nowhere = ServerProcess(tmp_path / "no-server")
    driver = DriverProcess(nowhere, tmp_path, script="plain_files_job.py")
    assert driver.wait(START_S) == 0, driver.said()[-4000:]
    outcome: dict[str, Any] = driver.status()
    assert outcome["folder"]["rows"] == list(range(8))
    count = len(outcome["rate"]["rows"])
    assert outcome["rate"]["rows"] == list(range(count))
    # Batches went on from where the first run ended, and each of the two has given rows.
    assert all(query["new_rows"] > 0 < query["first_batch"] for query in outcome.values())
