"""Batches on the paths that answers of admission plan: every answer and watermark is Spark's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from penstock.model.device_plans import ExplainedPlan
from support.servers.played_admission import PlayedAdmission
from support.servers.processes import ServerProcess, wait_until
from support.spark import window_runs
from support.spark.admitted_queries import terms
from support.spark.hidden_gpus import hidden_gpus
from support.spark.plain_windows import NO_DATA
from support.spark.played_plans import BYTES, PathsInTurn, ReportedPlans
from support.spark.window_rows import (
    Commit,
    append,
    commits,
    commits_with_empty_batches,
    some_commits,
    sums,
)
from support.spark.window_runs import DEVICES, Compared, WindowRun

COMMITS = 8
EXAMPLES = 4
ROWS = 30
"""Rows of a commit."""
OPERATIONS = ["filter", "project", "aggregate"]
EXPANDED_OPERATIONS = ["filter", "expand", "aggregate"]
POLICY = "spark.penstock.devices.policy"
EXPAND = "spark.penstock.devices.expand"
ASAP = {"policy": "asap"}


@pytest.fixture(scope="module")
def stream(client: Client) -> str:
    append(client, "planned_rows", some_commits(COMMITS))
    return "planned_rows"


@pytest.fixture(scope="module")
def theirs(spark: SparkSession, stream: str, tmp_path_factory: pytest.TempPathFactory) -> WindowRun:
    """The run by Spark; one in workers before it, so that these are known to start."""
    compared = Compared(spark, stream, tmp_path_factory.mktemp("theirs"), DEVICES, "cpu")
    compared.run(sums, "cpu")
    return compared.run(sums, "spark")


def run_planned(
    spark: SparkSession,
    stream: str,
    checkpoint: Path,
    options: dict[str, str],
    at_end: Callable[[StreamingQuery], None] | None = None,
    **settings: str,
) -> WindowRun:
    """The query under admission, with devices at `auto` unless settings say otherwise."""
    chosen = {DEVICES: "auto", **settings}
    return window_runs.run(
        spark, stream, sums, str(checkpoint), settings=chosen, options=options, at_end=at_end
    )


def check_answers(ours: WindowRun, theirs: WindowRun) -> None:
    assert window_runs.differences(theirs.answer, ours.answer) == []
    assert ours.progress == theirs.progress


def test_the_path_changes_with_the_plan_of_every_batch(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    stream: str,
    theirs: WindowRun,
    tmp_path: Path,
) -> None:
    plans = PathsInTurn(["spark", "columnar", "panes", "columnar"])
    admission.plan_of = plans
    reports = ReportedPlans(admission, plans)
    options = terms(admission, server)
    ours = run_planned(spark, stream, tmp_path / "ours", options, reports)
    check_answers(ours, theirs)
    assert set(plans.planned.values()) == {"spark", "panes", "columnar"}
    assert reports.paths == plans.planned
    for report in reports.by_cut.values():
        assert (report["rows"], report["bytes"]) == (ROWS, BYTES)
        assert report["stage_ms"] > 0 < report["tasks"]
        assert report["rule_ms"] > 0
        names = [(each["first"], each["device"]) for each in report["operations"]]
        if report["path"] == "columnar":
            assert names == [(0, "cpu"), (1, "cpu"), (2, "cpu")]
            assert all(each["ms"] > 0 < each["bytes"] for each in report["operations"])
            assert report["operations"][0]["rows"] == ROWS
            assert 0 < report["worker_ms"] < report["stage_ms"]
        else:
            assert names == []
    (note,) = ours.device_notes
    last = plans.planned[max(plans.planned)]
    assert note.text.startswith(f"{last} on cpu: turn of" if last == "columnar" else f"{last}: ")


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@example(made=commits_with_empty_batches())
@given(made=commits())
@pytest.mark.usefixtures("theirs")
def test_paths_that_change_with_every_batch_answer_any_rows_as_spark_does(
    spark: SparkSession,
    client: Client,
    server: ServerProcess,
    fresh: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
    made: list[Commit],
) -> None:
    stream, folder = fresh("planned"), tmp_path_factory.mktemp("planned")
    append(client, stream, made)
    by_spark = Compared(spark, stream, folder, DEVICES, "cpu").run(sums, "spark")
    plans = PathsInTurn(["columnar", "spark", "panes"])
    with PlayedAdmission(server.url) as admission:
        admission.plan_of = plans
        reports = ReportedPlans(admission, plans)
        options = terms(admission, server)
        ours = run_planned(spark, stream, folder / "ours", options, reports)
    check_answers(ours, by_spark)
    assert reports.paths == plans.planned


def test_a_question_names_what_can_be_planned_and_where(
    admission: PlayedAdmission,
    spark: SparkSession,
    server: ServerProcess,
    stream: str,
    theirs: WindowRun,
    tmp_path: Path,
) -> None:
    """Without a plan in any answer, batches run by panes."""
    ours = run_planned(spark, stream, tmp_path / "ours", terms(admission, server))
    check_answers(ours, theirs)
    assert "ColumnarPanes" not in ours.plan
    assert [note.text for note in ours.device_notes] == ["panes: no plan came with the batch"]
    assert [note.text.split(":")[0] for note in ours.notes] == ["panes"]
    first, *later = (each for each in admission.questions if each["is_first"])
    assert "pipeline" not in first
    pipeline = later[-1]["pipeline"]
    assert [each["kind"] for each in pipeline["operations"]] == OPERATIONS
    assert pipeline["operations"][-1]["text"].startswith("count(1), ")
    assert pipeline["paths"] == ["spark", "panes", "columnar"]
    assert (pipeline["windows"], pipeline["source"], pipeline["devices"]) == (12, 0, "auto")
    (machine,) = pipeline["machines"]
    assert machine["cpu"]
    assert (machine["cores"] > 0, machine["count"]) == (True, 1)
    assert all("plan" not in report for each in admission.questions for report in each["reports"])


def test_a_device_that_is_planned_and_not_there_is_the_cpu_and_reported(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    stream: str,
    theirs: WindowRun,
    tmp_path: Path,
) -> None:
    plans = PathsInTurn(["columnar"], ("cpu", "gpu"))
    admission.plan_of = plans
    reports = ReportedPlans(admission, plans)
    with hidden_gpus(spark):
        ours = run_planned(spark, stream, tmp_path / "ours", terms(admission, server), reports)
    check_answers(ours, theirs)
    columnar = [report for report in reports.by_cut.values() if report["path"] == "columnar"]
    assert columnar
    for report in columnar:
        (fallback,) = report["fallbacks"]
        assert (fallback["cause"], fallback["tasks"]) == ("absent", report["tasks"])
        assert {each["device"] for each in report["operations"]} == {"cpu"}
        assert [each["first"] for each in report["operations"]] == [0, 1, 2]
    assert [note.text for note in ours.device_notes] == ["columnar on cpu, gpu: turn of columnar"]


def joined_with_a_large_table(rows: DataFrame) -> DataFrame:
    """A table of more bytes than are sent to workers."""
    table = rows.sparkSession.range(200_000).selectExpr("concat('none', id) key", "id level")
    return sums(rows.join(f.broadcast(table), f.col("k") == f.col("key"), "left"))


@pytest.mark.usefixtures("theirs")
def test_a_batch_whose_table_is_too_large_is_reported_as_panes_and_workers_are_offered_no_more(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    stream: str,
    tmp_path: Path,
) -> None:
    plans = PathsInTurn(["columnar"])
    admission.plan_of = plans
    reports = ReportedPlans(admission, plans)
    ours = window_runs.run(
        *(spark, stream, joined_with_a_large_table, str(tmp_path / "ours")),
        settings={DEVICES: "auto", **NO_DATA},
        options=terms(admission, server),
        at_end=reports,
    )
    assert list(plans.planned.values()) == ["columnar", *["panes"] * (len(plans.planned) - 1)]
    assert set(reports.paths.values()) == {"panes"}
    too_large = "the table of a join is larger than 4 MB"
    assert [note.text for note in ours.device_notes] == [
        f"panes: turn of panes; not in workers: {too_large}"
    ]


def test_an_aggregate_of_a_later_stage_than_the_scan_is_not_planned_and_says_so(
    spark: SparkSession,
    server: ServerProcess,
    admission: PlayedAdmission,
    stream: str,
    theirs: WindowRun,
    tmp_path: Path,
) -> None:
    """Its tasks are not those that are measured."""
    ours = window_runs.run(
        *(spark, stream, lambda rows: sums(rows.repartition(2)), str(tmp_path / "ours")),
        settings={DEVICES: "auto"},
        options=terms(admission, server),
    )
    assert window_runs.differences(theirs.answer, ours.answer) == []
    assert not any("pipeline" in question for question in admission.questions)
    assert [note.text for note in ours.device_notes] == [
        "panes: not planned: Exchange stands between its aggregate and the log"
    ]


@pytest.mark.parametrize(
    ("options", "settings", "path", "reason"),
    [
        (ASAP, {}, "panes", "panes "),
        (ASAP, {POLICY: "ours-columnar"}, "columnar", "cheapest: cpu "),
        (
            *(ASAP, {POLICY: "all-cpu", EXPAND: "true"}),
            *("columnar", "policy all-cpu runs on the columnar path"),
        ),
        (ASAP, {DEVICES: "cpu"}, "columnar", "devices are set to cpu"),
        (ASAP, {DEVICES: "panes"}, "panes", "devices are set to panes"),
        # Sizes of batches and devices of operations, both as LMStream has them.
        ({"policy": "slide"}, {POLICY: "lmstream"}, "columnar", "policy lmstream runs on"),
    ],
)
def test_explain_shows_what_the_server_planned_and_the_batch_measured(
    spark: SparkSession,
    server: ServerProcess,
    stream: str,
    theirs: WindowRun,
    tmp_path: Path,
    options: dict[str, str],
    settings: dict[str, str],
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

    ours = run_planned(spark, stream, tmp_path / "ours", options, keep_plans, **settings)
    check_answers(ours, theirs)
    assert len(plans) >= COMMITS - 2
    assert {plan.ran_path for plan in plans} <= {"spark", "panes", "columnar"}
    assert all(plan.ran_path == plan.path and plan.rows == ROWS for plan in plans)
    fitting = [plan for plan in plans if plan.path == path and reason in plan.reason]
    assert fitting
    assert sum(plan.is_probe for plan in plans) <= 1
    if path == "columnar":
        kinds = EXPANDED_OPERATIONS if EXPAND in settings else OPERATIONS
        for plan in fitting:
            assert [each.kind for each in plan.operations] == kinds
            assert all(each.measured_ms and each.text for each in plan.operations)
