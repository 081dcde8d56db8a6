"""The columnar path over the runs of a query: workers that have to start, and a run that failed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from penstock.devices.calibration import Calibration, Machine
from penstock.devices.components import DEFAULT_LINES
from penstock.devices.left_out import PAUSES_MAX
from penstock.devices.planner import DevicePlanner, NoCalibrations
from penstock.devices.query_planning import WORKER_START_MS
from penstock.devices.worker_path import (
    LEFT_OUT_BATCHES,
    WORKERS_KEPT_MS,
    WorkerPath,
)
from penstock.model.device_plans import BatchPlan, DeviceChoice, PipelineBody, PlanPolicy
from support.device_worlds import CPU_MACHINE, TrueMachine, batch_of, machine_costs, pipeline_of

MB = 1_000_000
CHEAP_WORKERS = {**DEFAULT_LINES, "worker": DEFAULT_LINES["to_gpu"]}
PIPELINE = pipeline_of("filter", "aggregate", machines=(CPU_MACHINE,))
LITTLE_MS, ENOUGH_MS = 10.0, 2 * WORKER_START_MS


class CalibratedMachines(NoCalibrations):
    """Calibrations by which the way to a worker costs next to nothing."""

    def load(self, machine: Machine) -> Calibration | None:
        return machine_costs(CHEAP_WORKERS, machine).calibration()


class AskingQuery:
    """A query whose batches are planned one after the other, each a second after the last."""

    def __init__(self, pipeline: PipelineBody = PIPELINE) -> None:
        self.planner = DevicePlanner(CalibratedMachines())
        self.pipeline = pipeline
        self.cut = 0

    def plan(
        self, run: str = "first", *, reports: bool = True, starts: int = 0, **batch: object
    ) -> BatchPlan:
        """The plan of the next batch of a run; its report is heard unless the batch fails."""
        self.cut += 1
        to_plan = batch_of(self.cut, MB, MB, run=run, **batch)
        plan = self.planner.plan("q", self.pipeline, to_plan)
        if reports:
            report = TrueMachine(CHEAP_WORKERS, noise=0.0).run(plan, to_plan)
            assert report.plan is not None
            if starts:
                ran = replace(report.plan, stage_ms=9e3, worker_ms=9e3, started_workers=starts)
                report = replace(report, plan=ran)
            self.planner.heard("q", self.pipeline, [report])
            self.planner.tune("q")
        return plan

    def notes(self) -> tuple[str, ...]:
        devices = self.planner.explain("q", 0.0)
        assert devices is not None
        return devices.notes


@pytest.mark.parametrize("policy", ["ours", "all-cpu"])
def test_a_columnar_plan_that_never_reported_leaves_the_path_out_of_the_next_run(
    policy: PlanPolicy, caplog: pytest.LogCaptureFixture
) -> None:
    query = AskingQuery(replace(PIPELINE, policy=policy))
    assert query.plan("first", reports=False).path == "columnar"
    after = [query.plan("second").path for _ in range(LEFT_OUT_BATCHES)]
    assert "columnar" not in after
    assert "panes" in after
    assert caplog.text.count(f"left out for {LEFT_OUT_BATCHES} batches") == 1
    assert [query.plan("second").path for _ in range(2)].count("columnar") >= 1


def test_explain_says_for_how_long_the_path_is_left_out() -> None:
    query = AskingQuery()
    query.plan("first", reports=False)
    query.plan("second")
    query.plan("second")
    (note,) = [note for note in query.notes() if "left out" in note]
    assert f"for {LEFT_OUT_BATCHES - 2} batches" in note
    assert "look in the logs" in note


def test_a_run_whose_last_plan_reported_or_was_by_spark_has_not_failed() -> None:
    query = AskingQuery()
    assert query.plan("first").path == "columnar"
    assert query.plan("second").path == "columnar"
    # It went on with another batch, which came to its report.
    assert query.plan("second", reports=False).path == "columnar"
    assert query.plan("second").path == "columnar"
    query.plan("third")
    assert not [note for note in query.notes() if "left out" in note]


@pytest.mark.parametrize("choice", ["cpu", "gpu"])
def test_a_query_that_insists_on_workers_keeps_them(choice: DeviceChoice) -> None:
    query = AskingQuery(pipeline_of("filter", devices=choice))
    query.plan("first", reports=False)
    assert query.plan("second").path == "columnar"
    assert query.notes() == ()


def test_each_failure_in_a_row_doubles_the_time_up_to_a_bound() -> None:
    path, batches, pauses = WorkerPath(), 0, []
    path.run_asks("run 0", batches)
    for number in range(1, 8):
        path.planned(number, 0.0, is_columnar=True)
        assert path.run_asks(f"run {number}", batches)
        pauses.append(path.left_out_batches(batches))
        batches += pauses[-1]
    assert pauses == [300, 600, 1_200, 2_400, 4_800, 4_800, 4_800]
    assert pauses[0] == LEFT_OUT_BATCHES
    for cut in range(8, 8 + PAUSES_MAX * LEFT_OUT_BATCHES):
        path.planned(cut, 0.0, is_columnar=True)
        path.reported(cut, is_columnar=True)
    path.planned(9_999, 0.0, is_columnar=True)
    path.run_asks("the last run", batches)
    assert path.left_out_batches(batches) == LEFT_OUT_BATCHES, "it did run for long in between"


def test_a_batch_without_time_to_start_workers_takes_the_next_best_way() -> None:
    query = AskingQuery()
    cold = query.plan(spare_ms=LITTLE_MS)
    assert cold.path != "columnar"
    assert not cold.is_probe
    assert cold.reason.startswith("cheapest without workers, which the deadline leaves no time")
    assert "cpu " in cold.reason, "what they would take is still said"
    assert query.plan(spare_ms=ENOUGH_MS).path == "columnar"
    assert query.plan(spare_ms=LITTLE_MS).path == "columnar", "they are there now"


def test_workers_are_taken_to_be_gone_after_a_minute_and_in_another_run() -> None:
    query = AskingQuery()
    assert query.plan(spare_ms=ENOUGH_MS).path == "columnar"
    query.cut += round(WORKERS_KEPT_MS / 1_000)
    assert query.plan(spare_ms=LITTLE_MS).path != "columnar"
    assert query.plan(spare_ms=None).path == "columnar", "without a deadline there is time"
    assert query.plan("second", spare_ms=LITTLE_MS).path != "columnar"


def test_a_batch_that_spark_ran_otherwise_than_planned_has_started_no_workers() -> None:
    path = WorkerPath()
    path.planned(1, 0.0, is_columnar=True)
    assert path.has_workers(1.0)
    path.reported(1, is_columnar=False)
    assert not path.has_workers(2.0)


def test_where_no_other_path_is_open_workers_start_whatever_is_left() -> None:
    query = AskingQuery(replace(PIPELINE, paths=("columnar",)))
    assert query.plan(spare_ms=LITTLE_MS).path == "columnar"
    query.plan(reports=False)
    assert query.plan("second").path == "columnar"


def test_the_start_of_workers_is_no_part_of_their_cost_in_any_run() -> None:
    query = AskingQuery()
    expected_ms = [query.plan().expected_ms for _ in range(6)][-1]
    # Runs that end with their first batch, so that workers start with each.
    paths = [query.plan(f"run {number}", starts=2).path for number in range(8)]
    assert paths == ["columnar"] * 8
    assert query.plan("the last run").expected_ms == pytest.approx(expected_ms, rel=0.05)


def test_workers_that_start_with_every_batch_cost_their_start() -> None:
    """As where Spark is told to reuse no worker."""
    query = AskingQuery()
    paths = [query.plan(starts=2).path for _ in range(9)]
    assert paths[:2] == ["columnar", "columnar"]
    assert "columnar" not in paths[-3:]
