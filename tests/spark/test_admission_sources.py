"""Any source of Spark under admission: it is held, cut as it can be, and stays its own master.

Admission is played by the tests. A file source records files when it is asked, so it is asked only
for a batch:

    list the folder ─► question: 4 files, so many bytes, so old ─► wait ─► cut ─► ask the source
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.client import Client
from support.servers.played_admission import PlayedAdmission
from support.servers.processes import ServerProcess, wait_until
from support.spark import counting_source
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
    waiting_offer,
)

Fresh = Callable[[str], str]


def test_files_are_offered_withheld_and_cut_by_bytes(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    fresh: Fresh,
    tmp_path: Path,
    checkpoint: str,
) -> None:
    folder, table = tmp_path / "in", fresh("files")
    admission.is_withholding = True
    query = started(files(spark, folder, terms(admission, server)), checkpoint, table)
    try:
        for n in range(4):
            put_file(folder, f"part{n}", n)
        offered = waiting_offer(admission, query, "files", 4)
        assert offered["bytes"] == sum(path.stat().st_size for path in folder.glob("*.json"))
        assert offered["cuts_by"] == "bytes"
        # Asking Spark's source takes files: while they are withheld it is not asked.
        wait_for_questions(admission, query, 3)
        assert not list(Path(checkpoint, "sources", "0").glob("[0-9]*"))
        assert not batches(query)
        admission.takes[0] = 2 * offered["bytes"] // 4
        admission.is_withholding = False
        wait_until("all files are read", lambda: rows_in(spark, table) == [0, 1, 2, 3])
        wait_until("both batches are told of", lambda: len(batches(query)) == 2)
        assert [each["numInputRows"] for each in batches(query)] == [2, 2]
    finally:
        query.stop()


def put_sized(folder: Path, name: str, *rows: int, age_s: int) -> int:
    """Put a file so many seconds old into a folder; its bytes."""
    put_file(folder, name, *rows)
    path = folder / f"{name}.json"
    stat = path.stat()
    os.utime(path, (stat.st_atime, stat.st_mtime - age_s))
    return stat.st_size


def test_of_files_the_user_limits_the_batch_s_are_offered_and_what_it_read_is_reported(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    fresh: Fresh,
    tmp_path: Path,
    checkpoint: str,
) -> None:
    folder, table = tmp_path / "in", fresh("limited")
    sizes = [put_sized(folder, f"part{n}", *range(n + 1), age_s=60 - n) for n in range(5)]
    admission.is_withholding = True
    frame = files(spark, folder, terms(admission, server, maxFilesPerTrigger="2"))
    query = started(frame, checkpoint, table)
    try:
        offered = waiting_offer(admission, query, "files", 2)
        assert (offered["files"], offered["bytes"]) == (2, sum(sizes[:2])), "a batch has no more"
        assert offered["age_ms"] >= 60_000
        admission.is_withholding = False
        wait_until("all batches are told of", lambda: len(reports_sent(admission, query)) == 3)
        read = [sum(sizes[:2]), sum(sizes[2:4]), sizes[4]]
        assert [each["bytes"] for each in reports_sent(admission, query)] == read
        metrics = [each["sources"][0]["metrics"] for each in batches(query)]
        left = [int(each["penstock.backlogBytes"]) for each in metrics]
        assert left == [sum(sizes[2:]), sizes[4], 0]
    finally:
        query.stop()


def test_of_a_file_larger_than_its_batch_may_be_all_bytes_are_reported(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    fresh: Fresh,
    tmp_path: Path,
    checkpoint: str,
) -> None:
    folder = tmp_path / "in"
    sizes = [put_sized(folder, f"part{n}", *range(9 - n), age_s=60 - n) for n in range(2)]
    admission.takes[0] = 1
    query = started(files(spark, folder, terms(admission, server)), checkpoint, fresh("large"))
    try:
        wait_until("both batches are told of", lambda: len(reports_sent(admission, query)) == 2)
        assert [each["bytes"] for each in reports_sent(admission, query)] == sizes
    finally:
        query.stop()


def test_a_newer_source_is_held_and_its_offer_has_rows_and_an_age(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    fresh: Fresh,
    checkpoint: str,
) -> None:
    table = fresh("rate")
    admission.is_withholding = True
    rate = spark.readStream.format("rate").option("rowsPerSecond", 10)
    frame = rate.options(**terms(admission, server)).load().select(f.col("value").alias("n"))
    query = started(frame, checkpoint, table)
    try:
        offered = waiting_offer(admission, query, "rows", 20)
        assert offered["age_ms"] > 0
        assert offered["cuts_by"] == "nothing"
        assert not batches(query)
        assert not list(Path(checkpoint, "offsets").glob("[0-9]*"))
        admission.is_withholding = False
        wait_until("a batch has ended", lambda: len(rows_in(spark, table)) >= 20)
        rows = rows_in(spark, table)
        assert rows == list(range(len(rows)))
    finally:
        query.stop()


def test_a_query_that_runs_once_takes_all_and_asks_nobody(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    fresh: Fresh,
    tmp_path: Path,
    checkpoint: str,
) -> None:
    folder, table = tmp_path / "in", fresh("once")
    for n in range(3):
        put_file(folder, f"part{n}", n)
    admission.is_withholding = True
    frame = files(spark, folder, terms(admission, server, maxFilesPerTrigger="1"))
    query = started(frame, checkpoint, table, once=True)
    query.awaitTermination(300)
    assert rows_in(spark, table) == [0, 1, 2]
    assert admission.questions == []


def test_a_folder_is_read_to_the_end_that_was_available(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    fresh: Fresh,
    tmp_path: Path,
    checkpoint: str,
) -> None:
    folder, table = tmp_path / "in", fresh("available")
    for n in range(3):
        put_file(folder, f"part{n}", n)
    admission.is_withholding = True
    admission.takes[0] = 1
    frame = files(spark, folder, terms(admission, server))
    query = started(frame, checkpoint, table, availableNow=True)
    query.awaitTermination(300)
    assert rows_in(spark, table) == [0, 1, 2]
    # A byte at most is one file at least.
    assert [each["numInputRows"] for each in batches(query)] == [1, 1, 1]


@pytest.mark.parametrize("kind", ["files", "rate", "log"])
def test_a_checkpoint_goes_on_with_admission_without_it_and_with_it(
    spark: SparkSession,
    server: ServerProcess,
    client: Client,
    admission: PlayedAdmission,
    fresh: Fresh,
    tmp_path: Path,
    checkpoint: str,
    kind: str,
) -> None:
    folder, stream, rows = tmp_path / "in", fresh("turns"), list[int]()
    client.create(stream, "n bigint")
    with_terms = terms(admission, server)
    read: dict[str, Callable[[dict[str, str]], DataFrame]] = {
        "files": lambda options: files(spark, folder, options),
        "rate": lambda options: counted_seconds(spark, options),
        "log": lambda options: spark.readStream.format("penstock").options(**options).load(stream),
    }
    for turn, options in enumerate((with_terms, {}, with_terms)):
        put_file(folder, f"turn{turn}", turn)
        client.append(stream, numbers(turn))
        cuts = admission.cuts
        run_until_new_rows(read[kind](options), checkpoint, rows)
        assert (admission.cuts > cuts) == bool(options)
    assert sorted(rows) == list(range(len(rows)))
    assert len(rows) >= 3


def run_until_new_rows(frame: DataFrame, checkpoint: str, rows: list[int]) -> None:
    count = len(rows)
    query = started_into(frame, checkpoint, rows)
    try:
        wait_until("there are new rows", lambda: len(rows) > count)
        query.processAllAvailable()
    finally:
        query.stop()


def counted_seconds(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    rate = spark.readStream.format("rate").options(**options).load()
    return rate.select(f.col("value").alias("n"))


def test_the_session_s_deadline_is_for_every_query_and_source(
    spark: SparkSession,
    admission: PlayedAdmission,
    server: ServerProcess,
    fresh: Fresh,
    checkpoint: str,
) -> None:
    session = spark.newSession()
    named = {"url": admission.url, "token": server.token}
    rate = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 5)
    frame = rate.options(**named).load()
    # What counts is the session as the query starts.
    session.conf.set("spark.penstock.deadline", "800ms")
    session.conf.set("spark.penstock.importance", "3")
    query = started(frame, checkpoint, fresh("session"))
    try:
        wait_until("a batch has ended", lambda: bool(batches(query)))
        asked = admission.asked_for(query.id)[0]
        assert (asked["terms"]["deadline_ms"], asked["terms"]["importance"]) == (800, 3.0)
        offer = asked["inputs"][0]["offer"]
        assert (offer["rows"], offer["cuts_by"]) == (5, "nothing")
        assert asked["cores"] == 2
        assert asked["application"] == spark.sparkContext.applicationId
    finally:
        query.stop()


def test_files_that_were_taken_for_a_batch_that_never_began_are_read(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    tmp_path: Path,
    checkpoint: str,
) -> None:
    folder, rows = tmp_path / "in", list[int]()
    put_file(folder, "a", 1)
    put_file(folder, "b", 2)
    plain = started_into(files(spark, folder, {}), str(tmp_path / "plain"), [])
    plain.processAllAvailable()
    plain.stop()
    # Spark records the files before it records the batch: a driver may die in between.
    shutil.copytree(tmp_path / "plain" / "sources", Path(checkpoint, "sources"))
    put_file(folder, "c", 3)
    query = started_into(files(spark, folder, terms(admission, server)), checkpoint, rows)
    try:
        query.processAllAvailable()
        assert sorted(rows) == [1, 2, 3]
    finally:
        query.stop()


def test_a_relation_read_twice_is_one_source_and_keeps_its_hidden_columns(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    tmp_path: Path,
    checkpoint: str,
) -> None:
    folder, rows = tmp_path / "in", list[int]()
    frame = files(spark, folder, terms(admission, server)).select("n", "_metadata.file_name")
    named = frame.where(f.col("file_name") == "a.json")
    query = started_into(frame.union(named), checkpoint, rows)
    try:
        put_file(folder, "a", 1)
        put_file(folder, "b", 2)
        query.processAllAvailable()
        assert sorted(rows) == [1, 1, 2]
        assert {len(question["inputs"]) for question in admission.asked_for(query.id)} == {1}
    finally:
        query.stop()


def test_a_source_written_in_python_is_held_and_loses_nothing(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    checkpoint: str,
) -> None:
    # Spark's Python workers do not find the modules of tests.
    cloudpickle.register_pickle_by_value(counting_source)  # type: ignore[no-untyped-call]
    spark.dataSource.register(counting_source.CountingSource)
    rows: list[int] = []
    admission.is_withholding = True
    counting = spark.readStream.format("counting").options(**terms(admission, server)).load()
    query = started_into(counting, checkpoint, rows)
    try:
        wait_for_questions(admission, query, 3)
        assert rows == []
        admission.is_withholding = False
        wait_until("there is a batch", lambda: len(rows) > 1)
    finally:
        query.stop()
    assert sorted(rows) == list(range(len(rows)))
