"""What the columnar suite makes of its runs, without running them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from penstock.devices.components import DEFAULT_LINES
from penstock.devices.planner import DevicePlanner, NoCalibrations
from penstock.errors import BadCall, Bug
from penstock.observe.batch_ledger import BatchRecord
from penstock_lab.experiment import worker
from penstock_lab.experiment.run import Trial
from penstock_lab.experiment.worker import Job
from penstock_lab.measure import window_batches
from penstock_lab.measure.window_batches import Options
from penstock_lab.measure.window_cases import Case, streams_of
from penstock_lab.suites.columnar import SUITE
from penstock_lab.suites.columnar.cells import (
    COMMIT_ROWS,
    FULL,
    LEARNING_BATCHES,
    QUICK,
    plan_of,
)
from penstock_lab.suites.columnar.figures import auto_ways
from penstock_lab.suites.columnar.figures import figures as figures_of
from penstock_lab.suites.columnar.tables import unplanned
from support.bench_records import columnar_runs
from support.device_worlds import CPU_MACHINE, TrueMachine, batch_of, pipeline_of

QUICK_MINUTES = 12.5
CASE = Case("cm_job", 60, 5, rows=100, batches=2, warm_up=1)


def test_ratios_are_taken_within_a_repeat_and_then_their_median() -> None:
    # The machine was four times as slow in the second repeat, for all:
    #   spark   300  1200   330
    #   panes   100   400   100     best forced
    #   auto    120   400   110     ratio 2.5  3  3; choice 1.2  1  1.1
    plan = plan_of(quick=True, queries=("cm_job",))
    records = columnar_runs(plan, [300, 1200, 330], [100, 400, 100], [120, 400, 110])
    figures = {figure.name: figure for figure in figures_of(plan, records)}
    assert figures["cm_job_60_5.ratio"].repeats == (2.5, 3.0, 3.0)
    assert figures["cm_job_60_5.ratio"].value == 3.0
    assert figures["cm_job_60_5.choice"].value == pytest.approx(1.1)
    assert figures["cm_job_60_5.auto_ms_p50"].value == 120
    assert figures["cm_job_60_5.spark_stage_ms_p50"].value == 165
    assert figures["headline.ratio_expanding_min"].value == 3.0
    worst = figures["headline.worst_choice"]
    assert worst.value == pytest.approx(1.1)
    assert worst.repeats == pytest.approx((1.2, 1.0, 1.1))


def test_headlines_are_of_the_worst_case_that_is_a_goal() -> None:
    plan = QUICK
    [filled, run] = columnar_runs(plan, [300], [100], [100])

    def slower(case: str, **ms: float) -> None:
        run["cases"][case] = {
            path: {**times, "ms_p50": ms.get(path, times["ms_p50"])}
            for path, times in run["cases"][case].items()
        }

    slower("lr_speed_30_1", spark=210)
    slower("cm_job_60_10", spark=90)  # not among those that expand; auto should have left it
    slower("cm_category_60_5_small", spark=95)
    slower("lr_count_60_5_small", spark=10)  # outside the goals
    figures = {figure.name: figure.value for figure in figures_of(plan, [filled, run])}
    assert figures["headline.ratio_expanding_min"] == pytest.approx(2.1)
    assert figures["headline.ratio_small_min"] == pytest.approx(0.95)
    assert figures["headline.worst_choice"] == pytest.approx(100 / 90)
    assert figures["lr_count_60_5_small.ratio"] == pytest.approx(0.1)


def test_a_choice_stands_beside_the_ways_that_were_planned_and_none_is_said() -> None:
    plan = plan_of(quick=True, queries=("cm_job",))
    records = columnar_runs(plan, [300, 300], [100, 100], [100, 100])
    first, *others = plan.cases
    for record, ways in zip(records[1:], ({"panes": 1.0}, {"cpu": 0.5, "panes": 0.5}), strict=True):
        for case in plan.cases:
            by_path = record["cases"][case.name]
            planned = {**by_path["auto"], "ways": ways if case == first else {}}
            record["cases"][case.name] = {**by_path, "auto": planned}
    assert auto_ways(records, first) == {"cpu": 0.25, "panes": 0.75}
    (sentence,) = unplanned(plan, records)
    assert sentence.startswith(", ".join(case.name for case in others))
    assert unplanned(plan, []) == []


def test_a_suite_cut_short_has_the_figures_it_came_to() -> None:
    assert figures_of(QUICK, []) == []
    only_filled = columnar_runs(QUICK, [], [], [])
    assert figures_of(QUICK, only_filled) == []


def test_an_unknown_query_is_answered_with_those_there_are() -> None:
    with pytest.raises(BadCall, match="there is no query q5 here; there is cm_category"):
        plan_of(queries=("q5",))


def test_the_input_is_written_once_and_every_repeat_is_a_session_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, Options]] = []

    def answer(module: str, job: Job, timeout_s: float) -> dict[str, Any]:
        assert job.path.is_dir()
        asked.append((job.system, msgspec.convert(job.options, Options)))
        return {}

    monkeypatch.setattr(worker, "ask", answer)
    words: list[str] = []
    plan = plan_of(quick=True)
    Trial(SUITE, plan, tmp_path, words.append).execute()
    assert [system for system, _ in asked] == ["fill", "learn", *["paths"] * 3]
    assert [options.repeat for _, options in asked[2:]] == [0, 1, 2]
    assert {options.data for _, options in asked} == {asked[0][1].data}
    assert all(options.cases == plan.cases for _, options in asked)
    assert len(words) == SUITE.steps(plan)


def test_each_stream_holds_the_batches_of_its_cases_and_no_more() -> None:
    learning = QUICK.learning
    assert learning is not None
    rows = streams_of((*QUICK.cases, learning))
    large, small = (QUICK.warm_up + QUICK.batches), (QUICK.small_warm_up + QUICK.small_batches)
    assert rows == {
        "tasks": large * 400_000,
        "tasks_small": small * 20_000,
        "reports": large * 400_000,
        "reports_small": small * 20_000,
        "tasks_learning": 140 * 20_000,
    }
    assert all(count % COMMIT_ROWS == 0 for count in rows.values())
    with pytest.raises(Bug, match="cases of tasks need different numbers"):
        streams_of([CASE, msgspec.structs.replace(CASE, batches=3)])


def test_by_the_end_of_learning_every_path_was_measured_on_the_machine() -> None:
    """The first batch in workers had to start them, and taught nothing of what they take."""
    pipeline = pipeline_of("filter", "project", "aggregate", machines=(CPU_MACHINE,), windows=12)
    truth, planner = TrueMachine(DEFAULT_LINES, windows=12), DevicePlanner(NoCalibrations())
    learned: set[str] = set()
    started = 2
    for cut in range(1, LEARNING_BATCHES):
        batch = batch_of(cut, 500_000, 500_000)
        report = truth.run(planner.plan("learning", pipeline, batch), batch)
        ran = report.plan
        assert ran is not None
        if ran.path == "columnar" and started:
            ran = msgspec.structs.replace(ran, started_workers=started)
            report, started = msgspec.structs.replace(report, plan=ran), 0
        else:
            learned.add(ran.path)
        planner.heard("learning", pipeline, [report])
        planner.tune("learning")
    assert learned == {"spark", "panes", "columnar"}


def test_a_quick_run_is_reckoned_to_be_short_and_a_full_one_is_not() -> None:
    assert SUITE.minutes is not None
    assert 5 < SUITE.minutes(QUICK) < QUICK_MINUTES
    assert SUITE.minutes(FULL) > 2 * SUITE.minutes(QUICK)
    assert plan_of(quick=True, queries=("lr_count",)).learning is None


def test_event_time_runs_as_the_rate_says() -> None:
    for stream in ("tasks", "reports_small"):
        rows = window_batches.source_of(stream, 40_000).commit(80_000, 2)[stream]
        assert rows["timestamp"].to_pylist() == [3, 3]


def test_the_stage_below_the_shuffle_is_the_first_of_a_batch() -> None:
    def record(batch: int, rows: int, ms: int) -> dict[str, Any]:
        return {
            "progress": {
                "batchId": batch,
                "timestamp": "2026-01-01T00:00:00Z",
                "durationMs": {},
                "numInputRows": rows,
            },
            "stages": [
                {"id": 8, "submitted_ms": 100 + ms, "completed_ms": 900},
                {"id": 7, "submitted_ms": 100, "completed_ms": 100 + ms},
            ],
        }

    words = [record(0, 100, 90), record(1, 100, 30), record(2, 100, 20), record(3, 0, 1)]
    records = msgspec.convert(words, list[BatchRecord], strict=False)
    assert window_batches.source_stage_ms(records, CASE) == 20


def test_paths_with_other_rows_are_refused_and_other_orders_are_not() -> None:
    rows = pa.table({"job": [1, 2], "cpu": [0.5, 0.25]})
    turned = rows.take([1, 0])
    window_batches.check_same("cm_job", "spark", rows, "panes", turned)
    wrong = pa.table({"job": [1, 2], "cpu": [0.5, 0.5]})
    with pytest.raises(Bug, match="cm_job has 2 rows on path spark and 2 others on path panes"):
        window_batches.check_same("cm_job", "spark", rows, "panes", wrong)
