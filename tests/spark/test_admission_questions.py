"""Queries with a deadline: one question for all sources of a batch, over any source of Spark.

Admission is played by the tests, so that they say when data are withheld.

    Spark's stream thread   source 0: latestOffset      source 1: latestOffset      batch
                                 │ asks for both             │ takes its part
                                 └► question 1: wait ... ◄───┘
                                 └► question 2: cut n
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.client import Client
from support.servers.played_admission import PlayedAdmission, Question
from support.servers.processes import ServerProcess, wait_until
from support.spark.admitted_queries import (
    batches,
    files,
    numbers,
    put_file,
    reports_sent,
    rows_in,
    started,
    started_into,
    terms,
    wait_for_questions,
)
from support.spark.failpoints import Points

Fresh = Callable[[str], str]


def test_a_self_join_asks_once_for_both_its_sources(
    spark: SparkSession,
    server: ServerProcess,
    client: Client,
    admission: PlayedAdmission,
    fresh: Fresh,
    checkpoint: str,
) -> None:
    stream, table = fresh("selfjoin"), fresh("joined")
    client.create(stream, "n bigint")
    reader = spark.readStream.format("penstock").options(**terms(admission, server))
    left, right = reader.load(stream), reader.load(stream).select(f.col("n").alias("m"))
    query = started(left.join(right, left["n"] == right["m"]).select("n"), checkpoint, table)
    try:
        for n in range(3):
            client.append(stream, numbers(n))
            query.processAllAvailable()
        assert rows_in(spark, table) == [0, 1, 2]
        asked = admission.asked_for(query.id)
        assert {len(question["inputs"]) for question in asked} == {2}
        assert [each["number"] for each in asked[0]["inputs"]] == [0, 1]
        assert [each["source"] for each in asked[0]["inputs"]] == [0, 1]
        assert admission.cuts == 3 == len(batches(query))
        assert_the_first_after_a_batch_is_not_held(asked)
    finally:
        query.stop()


def assert_the_first_after_a_batch_is_not_held(asked: list[Question]) -> None:
    assert asked[0]["is_first"]
    assert sum(question["is_first"] for question in asked) >= 4
    assert all(question["wait_ms"] == 0 for question in asked if question["is_first"])


def test_a_log_and_a_folder_in_one_query_share_a_question_and_a_deadline(
    spark: SparkSession,
    server: ServerProcess,
    client: Client,
    admission: PlayedAdmission,
    fresh: Fresh,
    tmp_path: Path,
    checkpoint: str,
) -> None:
    stream, table, folder = fresh("both"), fresh("mixed"), tmp_path / "in"
    client.create(stream, "n bigint")
    # Only the log's reader states terms; the other source is withheld and cut with it.
    log = spark.readStream.format("penstock").options(**terms(admission, server)).load(stream)
    named = {"url": admission.url, "token": server.token}
    admission.is_withholding = True
    query = started(log.unionByName(files(spark, folder, named)), checkpoint, table)
    try:
        put_file(folder, "one", 1)
        client.append(stream, numbers(2))
        wait_for_questions(admission, query, 4)
        assert rows_in(spark, table) == []
        inputs = admission.asked_for(query.id)[-1]["inputs"]
        kinds = ["stream" if "stream" in each else "offer" for each in inputs]
        assert sorted(kinds) == ["offer", "stream"]
        query.processAllAvailable()
        assert rows_in(spark, table) == [1, 2]
        assert admission.asked_for(query.id)[0]["terms"] == {
            "deadline_ms": 2000, "policy": "deadline", "importance": 1.0, "from": "arrival",
        }  # fmt: skip
    finally:
        query.stop()


def test_of_several_deadlines_the_earliest_counts(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    fresh: Fresh,
    checkpoint: str,
) -> None:
    def rate(deadline: str) -> DataFrame:
        options = terms(admission, server) | {"deadline": deadline}
        return spark.readStream.format("rate").options(**options).load()

    admission.is_withholding = True
    query = started(rate("2s").union(rate("1s")), checkpoint, fresh("earliest"))
    try:
        wait_for_questions(admission, query, 1)
        asked = admission.asked_for(query.id)[0]
        assert asked["terms"]["deadline_ms"] == 1_000
        assert len(asked["inputs"]) == 2
    finally:
        query.stop()


def test_nothing_is_withheld_from_whoever_waits_for_all_of_it(
    spark: SparkSession,
    server: ServerProcess,
    client: Client,
    admission: PlayedAdmission,
    fresh: Fresh,
    checkpoint: str,
) -> None:
    stream = fresh("awaited")
    client.create(stream, "n bigint")
    admission.is_withholding = True
    reader = spark.readStream.format("penstock").options(**terms(admission, server))
    rows: list[int] = []
    query = started_into(reader.load(stream), checkpoint, rows)
    try:
        client.append(stream, numbers(1, 2, 3))
        wait_for_questions(admission, query, 4)
        assert rows == []
        query.processAllAvailable()
        assert rows == [1, 2, 3]
    finally:
        query.stop()
    client.append(stream, numbers(4, 5))
    query = started_into(reader.load(stream), checkpoint, rows, availableNow=True)
    query.awaitTermination(300)
    assert rows == [1, 2, 3, 4, 5]
    assert all(question["must_cut"] for question in admission.asked_for(query.id)[-2:])


def test_a_finished_batch_is_told_of_with_the_next_question_and_to_a_new_server_again(
    spark: SparkSession,
    server: ServerProcess,
    client: Client,
    admission: PlayedAdmission,
    fresh: Fresh,
    checkpoint: str,
) -> None:
    stream, table = fresh("told"), fresh("reports")
    client.create(stream, "n bigint")
    reader = spark.readStream.format("penstock").options(**terms(admission, server))
    query = started(reader.load(stream), checkpoint, table)
    try:
        for n in range(3):
            client.append(stream, numbers(n, n))
            query.processAllAvailable()
        wait_until("all batches are told of", lambda: len(reports_sent(admission, query)) == 3)
        reports = reports_sent(admission, query)
        assert [report["cut"] for report in reports] == [1, 2, 3]
        assert all(report["rows"] == 2 and report["has_data"] for report in reports)
        assert all(report["core_ms"] >= report["longest_task_ms"] >= 0 for report in reports)
        assert all(report["tasks"] > 0 and report["visible_ms"] > 0 for report in reports)
        admission.server = "second"
        wait_until("they are told of again", lambda: len(reports_sent(admission, query)) == 6)
        assert reports_sent(admission, query)[3:] == reports
    finally:
        query.stop()


def test_jobs_have_their_deadline_and_progress_says_how_it_was_kept(
    spark: SparkSession,
    server: ServerProcess,
    client: Client,
    admission: PlayedAdmission,
    fresh: Fresh,
    checkpoint: str,
) -> None:
    stream = fresh("jobs")
    client.create(stream, "n bigint")
    admission.left_ms = -5_000.0
    properties: list[dict[str, str]] = []

    def remember(frame: DataFrame, _: int) -> None:
        assert frame.count() == 1
        context = frame.sparkSession.sparkContext
        names = ("query", "deadlineAt", "weight")
        of_jobs = {name: str(context.getLocalProperty(f"penstock.{name}")) for name in names}
        properties.append(
            {**of_jobs, "pool": str(context.getLocalProperty("spark.scheduler.pool"))}
        )

    reader = spark.readStream.format("penstock").options(**terms(admission, server))
    query = (
        reader.load(stream)
        .writeStream.foreachBatch(remember)
        .option("checkpointLocation", checkpoint)
        .start()
    )
    try:
        asked_ms = time.time() * 1000
        client.append(stream, numbers(1))
        query.processAllAvailable()
        of_jobs = properties[-1]
        assert of_jobs["query"] == query.id
        assert of_jobs["weight"] == "0.5"
        assert of_jobs["pool"] == "penstock"
        assert admission.asked_for(query.id)[-1]["schedule"] == "edf"
        assert abs(int(of_jobs["deadlineAt"]) + 5_000 - asked_ms) < 60_000
        metrics = batches(query)[-1]["sources"][0]["metrics"]
        assert metrics["penstock.batchesMissed"] == "1"
        assert int(metrics["penstock.slackMs"]) <= -5_000
        assert metrics["penstock.reason"] == "the test says so"
        assert metrics["penstock.backlogPositions"] == "0"
        assert {"penstock.predictionErrorMs", "penstock.deadlineMs"} <= metrics.keys()
    finally:
        query.stop()


@pytest.mark.parametrize(
    ("window", "option", "slide_ms"),
    [
        (("10 seconds", "5 seconds"), {}, 5_000),
        (("30 seconds",), {}, 30_000),
        (("10 seconds", "5 seconds"), {"slide": "7s"}, 5_000),
        (None, {"slide": "7s"}, 7_000),
    ],
)
def test_the_slide_is_that_of_a_window_in_the_plan_else_the_option(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    checkpoint: str,
    fresh: Fresh,
    window: tuple[str, ...] | None,
    option: dict[str, str],
    slide_ms: int,
) -> None:
    options = {**terms(admission, server, policy="slide"), **option}
    rate = spark.readStream.format("rate").options(**options).load()
    key = f.col("value") if window is None else f.window("timestamp", *window)
    counted = rate.groupBy(key).count()
    admission.is_withholding = True
    query = (
        counted.writeStream.format("memory")
        .queryName(fresh("windows"))
        .outputMode("complete")
        .option("checkpointLocation", checkpoint)
        .start()
    )
    try:
        wait_for_questions(admission, query, 1)
        assert admission.asked_for(query.id)[0]["terms"]["slide_ms"] == slide_ms
    finally:
        query.stop()


def test_withheld_data_do_not_wait_for_the_commit_of_the_batch_before(
    spark: SparkSession,
    server: ServerProcess,
    client: Client,
    admission: PlayedAdmission,
    points: Points,
    fresh: Fresh,
    checkpoint: str,
) -> None:
    stream, sink = fresh("slow"), fresh("behind")
    client.create(stream, "n bigint")
    client.create(sink, "n bigint")
    reader = spark.readStream.format("penstock").options(**terms(admission, server))
    writer = reader.load(stream).writeStream.format("penstock")
    query = writer.option("checkpointLocation", checkpoint).start(sink)
    try:
        client.append(stream, numbers(0))
        query.processAllAvailable()
        points.hold("before_release", [query.id])
        client.append(stream, numbers(1))
        wait_until("the next batch is cut", lambda: admission.cuts == 2)
        admission.is_withholding = True
        client.append(stream, numbers(2))
        wait_until(
            "the commit stands still", lambda: points.held("before_release", [query.id]) != {}
        )
        # Questions go on, whose data are withheld.
        wait_for_questions(admission, query, 4)
        assert client.read(sink).num_rows == 1
        points.let_go("before_release")
        query.processAllAvailable()
        assert client.read(sink).num_rows == 3
    finally:
        points.let_go("before_release")
        query.stop()
