"""Windows that do not overlap in Python workers: every answer and all state are Spark's own, and a
plan that workers do not make is the one that Spark has made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from penstock.model.device_plans import ExplainedPlan
from penstock_lab.queries.registry import named
from penstock_lab.workloads.cluster_trace import ClusterTrace, ClusterTraceOptions
from support.servers.played_admission import PlayedAdmission
from support.servers.processes import ServerProcess, wait_until
from support.spark import window_runs
from support.spark.admitted_queries import terms
from support.spark.plain_windows import NO_DATA
from support.spark.played_plans import PathsInTurn, ReportedPlans
from support.spark.window_rows import (
    Commit,
    append,
    append_commit,
    commits,
    commits_with_empty_batches,
    some_commits,
    tumbling_sums,
)
from support.spark.window_runs import DEVICES, SETTING, ZONE, Compared, WindowRun

EXAMPLES = 3
COMMITS = 6
STEPS = "event_time, filter, project, aggregate"
ON_CPU = f"cpu: {STEPS}"
NO_PANES = "left to Spark: windows do not overlap"
POLICY = "spark.penstock.devices.policy"
EXPAND = "spark.penstock.devices.expand"


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@example(made=commits_with_empty_batches(), mode="append", zone="UTC")
@given(
    made=commits(),
    mode=st.sampled_from(["update", "append"]),
    zone=st.sampled_from(["UTC", "Asia/Kathmandu", "America/St_Johns"]),
)
def test_every_batch_is_answered_as_by_spark(
    spark: SparkSession,
    client: Client,
    fresh: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
    device: str,
    made: list[Commit],
    mode: str,
    zone: str,
) -> None:
    stream = fresh("tumbling")
    append(client, stream, made)
    compared = Compared(spark, stream, tmp_path_factory.mktemp("tumbling"), DEVICES, device)
    ours = compared.check(tumbling_sums, mode=mode, settings={ZONE: zone})
    assert [note.text for note in ours.device_notes] == [f"{device}: {STEPS}"]
    assert [note.text for note in ours.notes] == [NO_PANES]


@pytest.fixture(scope="module")
def stream(client: Client) -> str:
    append(client, "tumbling_rows", some_commits(COMMITS))
    return "tumbling_rows"


@pytest.fixture
def compared(spark: SparkSession, stream: str, tmp_path: Path) -> Compared:
    return Compared(spark, stream, tmp_path, DEVICES, "cpu")


def windowed() -> Any:
    return f.window("at", "20 seconds")


def narrowed(rows: DataFrame) -> DataFrame:
    """Filters and computed columns on both sides of the windows, and below the watermark."""
    return (
        rows.where("n >= 0 and coalesce(k, 'a') in ('a', 'c')")
        .withWatermark("at", "20 seconds")
        .select(windowed(), "k", (f.col("i") * 2).alias("twice"), "x", "n")
        .where("twice > 4")
        .groupBy("window", "k", f.expr("case when x > 2 then n % 2 else -1 end").alias("c"))
        .agg(f.sum("twice").alias("total"), f.avg("x").alias("mean"))
        .select("window.start", "window.end", "k", "c", "total", "mean")
    )


def by_the_window_alone(rows: DataFrame) -> DataFrame:
    """No watermark, and rows whose time is null."""
    return rows.groupBy(windowed()).agg(f.max("d").alias("d"), f.count("k").alias("n"))


def in_capitals(rows: DataFrame) -> DataFrame:
    marked = rows.withWatermark("at", "20 seconds")
    return marked.groupBy(windowed(), f.upper("k").alias("k")).agg(f.sum("i").alias("i"))


def of_later_windows(rows: DataFrame) -> DataFrame:
    """Spark looks at the start of a row's window where it reads the row."""
    later = rows.select(windowed(), "i").where("window.start > timestamp'2023-11-14 22:13:30'")
    return later.groupBy("window").agg(f.sum("i").alias("i"))


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (narrowed, "cpu: filter, project, event_time, filter, project, aggregate"),
        (by_the_window_alone, "cpu: filter, project, aggregate"),
        (in_capitals, "left to Spark: upper is not among the functions of pipelines"),
        (
            of_later_windows,
            "left to Spark: precisetimestampconversion is not among the functions of pipelines",
        ),
    ],
)
def test_what_translates_goes_to_workers_and_the_rest_stays_as_spark_plans_it(
    compared: Compared, build: Callable[[DataFrame], DataFrame], text: str
) -> None:
    ours = compared.check(build, settings=NO_DATA)
    assert any(ours.answer.values())
    assert [note.text for note in ours.device_notes] == [text]
    assert ("ColumnarPanes on cpu" in ours.plan) == text.startswith("cpu")
    assert ("pane#" in ours.plan) == text.startswith("cpu")


@pytest.mark.parametrize(
    ("chosen", "texts"),
    [
        ({DEVICES: "panes"}, []),
        ({DEVICES: "auto"}, []),
        ({DEVICES: "cpu", SETTING: "spark"}, []),
        # There is nothing to expand.
        ({DEVICES: "cpu", EXPAND: "true"}, [ON_CPU]),
    ],
)
def test_settings_say_whether_workers_make_it(
    compared: Compared, chosen: dict[str, str], texts: list[str]
) -> None:
    ran = compared.run(tumbling_sums, chosen[DEVICES], settings={**NO_DATA, **chosen})
    assert [note.text for note in ran.device_notes] == texts
    assert ("pane#" in ran.plan) == bool(texts)


def test_the_path_changes_at_every_restart_of_one_checkpoint(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    """One checkpoint by Spark, workers, Spark and workers, beside one that is always by Spark."""
    stream, made = fresh("tumbling"), some_commits(4)
    append(client, stream, [])
    compared = Compared(spark, stream, tmp_path, DEVICES, "cpu")
    steps, written = [], []
    for rows, device in zip(made, ("spark", "cpu", "panes", "cpu"), strict=True):
        append_commit(client, stream, rows)
        switched, same = (
            compared.run(tumbling_sums, each, checkpoint=name, mode="append")
            for each, name in ((device, "switched"), ("spark", "same"))
        )
        assert window_runs.differences(same.answer, switched.answer) == []
        assert switched.progress == same.progress
        steps.append([note.text for note in switched.device_notes])
        written += window_runs.rows_written(switched.answer)
    assert steps == [[], [ON_CPU], [], [ON_CPU]]
    assert written
    checkpoints = [tmp_path / f"{stream}-{name}" for name in ("switched", "same")]
    state = [window_runs.state_description(checkpoint) for checkpoint in checkpoints]
    assert state[0] == state[1] != {}


def test_the_papers_workload_of_such_windows_runs_in_workers(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    """CM1T: a second aggregate sorts the sums of a window, which is left to Spark."""
    stream, trace = fresh("tasks"), ClusterTrace(ClusterTraceOptions(rate=5))
    client.create(stream, "at timestamp, category int, cpu float, sent_at timestamp")
    for first in range(0, 600, 200):
        events = pa.table(trace.events(first, 200)).select(["at", "category", "cpu"])
        client.append(stream, events.append_column("sent_at", events["at"]))
    (stage,) = named("cm_category_60_tumbling").stages
    compared = Compared(spark, stream, tmp_path, DEVICES, "cpu")
    ours = compared.check(lambda rows: stage.build({"tasks": rows}), mode=stage.mode)
    assert any(ours.answer.values())
    assert [note.text for note in ours.device_notes] == [ON_CPU]


@pytest.fixture(scope="module")
def theirs(spark: SparkSession, stream: str, tmp_path_factory: pytest.TempPathFactory) -> WindowRun:
    """The run by Spark; one in workers before it, so that these are known to start."""
    compared = Compared(spark, stream, tmp_path_factory.mktemp("theirs"), DEVICES, "cpu")
    compared.run(tumbling_sums, "cpu")
    return compared.run(tumbling_sums, "spark")


def test_the_path_changes_with_the_plan_of_every_batch(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    stream: str,
    theirs: WindowRun,
    tmp_path: Path,
) -> None:
    """A plan that says panes, which are not offered, is Spark's."""
    plans = PathsInTurn(["columnar", "spark", "panes"])
    admission.plan_of = plans
    reports = ReportedPlans(admission, plans)
    ours = window_runs.run(
        *(spark, stream, tumbling_sums, str(tmp_path / "ours")),
        settings={DEVICES: "auto"},
        options=terms(admission, server),
        at_end=reports,
    )
    assert window_runs.differences(theirs.answer, ours.answer) == []
    assert ours.progress == theirs.progress
    assert set(plans.planned.values()) == {"spark", "columnar"}
    assert reports.paths == plans.planned
    pipeline = next(each["pipeline"] for each in admission.questions if "pipeline" in each)
    assert (pipeline["paths"], pipeline["windows"]) == (["spark", "columnar"], 1)
    assert [each["kind"] for each in pipeline["operations"]] == ["filter", "project", "aggregate"]
    (note,) = ours.device_notes
    last = plans.planned[max(plans.planned)]
    assert note.text == f"{last}{' on cpu' if last == 'columnar' else ''}: turn of {last}"


def joined_with_a_large_table(rows: DataFrame) -> DataFrame:
    """A table of more bytes than are sent to workers."""
    table = rows.sparkSession.range(200_000).selectExpr("concat('none', id) key", "id level")
    return tumbling_sums(rows.join(f.broadcast(table), f.col("k") == f.col("key"), "left"))


def test_a_batch_whose_table_is_too_large_is_reported_as_sparks(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    stream: str,
    theirs: WindowRun,
    tmp_path: Path,
) -> None:
    plans = PathsInTurn(["columnar"])
    admission.plan_of = plans
    reports = ReportedPlans(admission, plans)
    ours = window_runs.run(
        *(spark, stream, joined_with_a_large_table, str(tmp_path / "ours")),
        settings={DEVICES: "auto"},
        options=terms(admission, server),
        at_end=reports,
    )
    assert window_runs.differences(theirs.answer, ours.answer) == []
    assert "columnar" in plans.planned.values()
    assert set(reports.paths.values()) == {"spark"}


@pytest.mark.parametrize(
    ("chosen", "path", "reason"),
    [
        ({}, "spark", "spark "),
        ({POLICY: "ours-columnar"}, "columnar", "cheapest: cpu "),
        ({DEVICES: "panes"}, "spark", "devices are set to panes, and rows are in one window: as"),
    ],
)
def test_explain_shows_what_the_server_planned_and_the_batch_measured(
    spark: SparkSession,
    server: ServerProcess,
    stream: str,
    theirs: WindowRun,
    tmp_path: Path,
    chosen: dict[str, str],
    path: str,
    reason: str,
) -> None:
    plans: list[ExplainedPlan] = []

    def keep_plans(query: StreamingQuery) -> None:
        def explained() -> list[ExplainedPlan]:
            devices = server.client().explain(query.id).devices
            return [] if devices is None else list(devices.plans)

        def is_measured() -> bool:
            shown = explained()
            return bool(shown) and all(plan.measured_ms is not None for plan in shown)

        wait_until("all planned batches are measured", is_measured)
        plans.extend(explained())

    ours = window_runs.run(
        *(spark, stream, tumbling_sums, str(tmp_path / "ours")),
        settings={DEVICES: "auto", **chosen},
        options={"policy": "asap"},
        at_end=keep_plans,
    )
    assert window_runs.differences(theirs.answer, ours.answer) == []
    assert ours.progress == theirs.progress
    assert {plan.ran_path for plan in plans} <= {"spark", "columnar"}
    assert all(plan.ran_path == plan.path for plan in plans)
    assert any(plan.path == path and reason in plan.reason for plan in plans)
