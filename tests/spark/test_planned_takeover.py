"""A query whose path changes with every batch is killed and goes on, at last by Spark alone."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from penstock.client import Client
from support.servers.played_admission import PlayedAdmission
from support.servers.processes import START_S, DriverProcess, ServerProcess, wait_until
from support.spark import plain_windows, spark_alone, window_runs
from support.spark.admitted_queries import terms
from support.spark.played_plans import PathsInTurn, ReportedPlans
from support.spark.window_runs import DEVICES

MODE = "spark.penstock.commit.mode"
PATHS = ["columnar", "spark", "columnar", "panes"]
KILLED_AT, ENDED_AT = 6, 9
"""Batches that are cut when the driver is killed, and when Spark goes on by itself."""
PLAN_FREE = ("offsets", "sources")
"""Folders of a checkpoint that are of the source, and of no path."""


def test_a_query_that_changes_path_with_every_batch_is_killed_and_continued_by_spark_alone(
    spark: SparkSession,
    server: ServerProcess,
    client: Client,
    admission: PlayedAdmission,
    tmp_path: Path,
) -> None:
    """Commits of the log and files with the same rows, one a batch.

    batches 0 to 5    a driver, a path for each batch       killed while it has a batch
    up to batch 8     this session, again a path for each
    batch 9           Spark without the jar, over the file
    """
    parts, checkpoint, whole = (tmp_path / name for name in ("parts", "ours", "whole"))
    stream = "planned_takeover"
    client.create(stream, plain_windows.SCHEMA, substreams=2, key="k")
    for number in range(ENDED_AT):
        plain_windows.write_part(parts, number)
        client.append(stream, pq.read_table(parts / f"part-{number}.parquet"))
    options = terms(admission, server, maxRowsPerTrigger="1")
    plans = PathsInTurn(PATHS)
    admission.plan_of = plans
    killed = run_until_killed(server, admission, tmp_path / "driver", stream, options, checkpoint)
    killed_at = max(plans.planned)
    assert len(killed) < ENDED_AT
    reports = ReportedPlans(admission, plans, after=killed_at)
    settings = {**plain_windows.NO_DATA, MODE: "sync", DEVICES: "auto"}
    later = window_runs.run(
        spark,
        stream,
        plain_windows.sums,
        str(checkpoint),
        settings=settings,
        options=options,
        at_end=reports,
    )
    check_paths(plans, reports, killed_at)
    by_spark = {**settings, DEVICES: "spark"}

    def run_by_spark() -> window_runs.WindowRun:
        def files() -> DataFrame:
            return plain_windows.read(spark, parts)

        return window_runs.run_frame(spark, files, str(whole), settings=by_spark)

    theirs = run_by_spark().answer
    assert watermarks(checkpoint) == watermarks(whole)
    assert len(watermarks(whole)) == ENDED_AT
    alone = over_files(checkpoint, whole, tmp_path / "alone")
    plain_windows.write_part(parts, ENDED_AT)
    last = spark_alone.continued(parts, alone)
    theirs |= run_by_spark().answer
    assert window_runs.differences({**killed, **later.answer, **last}, theirs) == []
    assert sorted(theirs) == list(range(ENDED_AT + 1))


def check_paths(plans: PathsInTurn, reports: ReportedPlans, killed_at: int) -> None:
    """Batches ran as planned: another path after each, once workers were offered, in both runs."""
    ran = reports.paths
    assert ran == {cut: plans.planned[cut] for cut in ran}
    assert set(ran.values()) == {"spark", "panes", "columnar"}
    runs = [
        [path for cut, path in sorted(ran.items()) if (cut > killed_at) == is_later]
        for is_later in (False, True)
    ]
    offered = [paths[paths.index("columnar") :] if "columnar" in paths else [] for paths in runs]
    changes = [pair for paths in offered for pair in pairwise(paths)]
    assert changes
    assert all(before != after for before, after in changes), runs


def run_until_killed(
    server: ServerProcess,
    admission: PlayedAdmission,
    folder: Path,
    stream: str,
    options: dict[str, str],
    checkpoint: Path,
) -> window_runs.Answer:
    """The answers of a driver that is killed as soon as it has enough batches."""
    answers = folder / "answers"
    answers.mkdir(parents=True)
    driver = DriverProcess(
        server,
        folder,
        script="planned_windows_job.py",
        args={
            "stream": stream,
            "options": options,
            "checkpoint": str(checkpoint),
            "answers": str(answers),
        },
    )
    try:
        wait_until(
            "enough batches are cut",
            lambda: admission.cuts >= KILLED_AT or not driver.is_running(),
            START_S,
        )
        assert driver.is_running(), driver.said()[-4000:]
    finally:
        driver.kill()
    files = sorted(answers.glob("*.json"))
    return {int(file.stem): [tuple(row) for row in json.loads(file.read_text())] for file in files}


def watermarks(checkpoint: Path) -> dict[int, int]:
    """The watermark of every batch, as the checkpoint has it."""
    files = [path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()]
    return {
        int(path.name): json.loads(path.read_text().splitlines()[1])["batchWatermarkMs"]
        for path in files
    }


def over_files(checkpoint: Path, whole: Path, place: Path) -> Path:
    """A copy of a checkpoint whose source is that of another one, which read the same rows."""
    shutil.copytree(checkpoint, place)
    for name in PLAN_FREE:
        shutil.rmtree(place / name, ignore_errors=True)
        shutil.copytree(whole / name, place / name)
    return place
