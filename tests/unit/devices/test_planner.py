"""The planner of a server: queries, machines, reports that come late, and what is explained."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from penstock.devices.calibration import Calibration, Machine, machine_of
from penstock.devices.calibration_files import CalibrationFiles
from penstock.devices.components import DEFAULT_LINES
from penstock.devices.planner import SAVE_EVERY, DevicePlanner, NoCalibrations
from penstock.devices.what_if import device_sentences
from penstock.errors import BadCall
from penstock.model.device_plans import (
    BatchPlan,
    FallbackReport,
    OperationBody,
    OperationReport,
    PipelineBody,
    PlanReport,
)
from penstock.model.requests import BatchReport
from support.device_worlds import (
    CPU_MACHINE,
    GPU_MACHINE,
    TrueMachine,
    batch_of,
    machine_costs,
    pipeline_of,
    true_lines,
)

KB, MB = 1_000, 1_000_000


def run_batches(
    planner: DevicePlanner, pipeline: PipelineBody, truth: TrueMachine, cuts: range, size: int
) -> list[BatchPlan]:
    """Plan batches of this size a task and report each before the next one."""
    plans = []
    for cut in cuts:
        batch = batch_of(cut, size, size)
        plans.append(planner.plan("q", pipeline, batch))
        planner.heard("q", pipeline, [truth.run(plans[-1], batch)])
        planner.tune("q")
    return plans


def test_a_query_learns_which_path_is_the_cheapest() -> None:
    """Panes are thought to be cheapest; in truth the worker is, by far."""
    lines = {**DEFAULT_LINES, "worker": DEFAULT_LINES["to_gpu"]}
    truth = TrueMachine(lines)
    pipeline = pipeline_of("filter", "aggregate", machines=(CPU_MACHINE,))
    plans = run_batches(DevicePlanner(NoCalibrations()), pipeline, truth, range(1, 300), 200 * KB)
    assert plans[0].path != "columnar"
    assert {plan.path for plan in plans[-20:] if not plan.is_probe} == {"columnar"}
    assert 2 <= sum(plan.is_probe for plan in plans) <= 6


def test_no_probe_where_the_deadline_leaves_no_room() -> None:
    planner = DevicePlanner(NoCalibrations())
    pipeline = pipeline_of("filter", "sort", paths=("columnar",))
    plans = [
        planner.plan("q", pipeline, batch_of(cut, KB, spare_ms=0.0 if cut < 200 else 1_000.0))
        for cut in range(1, 260)
    ]
    assert [plan.is_probe for plan in plans].index(True) == 199


def test_forced_choices_and_other_policies_but_the_papers_are_never_probed() -> None:
    planner = DevicePlanner(NoCalibrations())
    for policy, probes in (("all-cpu", 0), ("static", 0), ("lmstream", 2)):
        pipeline = pipeline_of("filter", "sort", policy=policy)
        plans = [planner.plan(policy, pipeline, batch_of(cut, KB)) for cut in range(1, 100)]
        assert sum(plan.is_probe for plan in plans) == probes
    forced = pipeline_of("filter", devices="panes")
    assert not any(planner.plan("f", forced, batch_of(n, KB)).is_probe for n in range(1, 100))


def test_ours_held_to_the_columnar_path_probes_devices_and_never_another_path() -> None:
    pipeline = pipeline_of("filter", "sort", policy="ours-columnar")
    truth = TrueMachine(true_lines(random.Random(3)))
    plans = run_batches(DevicePlanner(NoCalibrations()), pipeline, truth, range(1, 200), MB)
    assert {plan.path for plan in plans} == {"columnar"}
    assert any(plan.is_probe for plan in plans)


def test_a_report_counts_once_and_only_when_there_is_time() -> None:
    planner = DevicePlanner(NoCalibrations())
    pipeline = pipeline_of("sort", devices="cpu")
    batch = batch_of(1, MB)
    expected = planner.plan("q", pipeline, batch).operations[0].expected_ms
    report = BatchReport(
        1,
        visible_ms=500.0,
        plan=PlanReport(
            "columnar", 200.0, 1, MB, 10, 100.0, operations=(OperationReport(0, "cpu", 99.0, MB),)
        ),
    )
    planner.heard("q", pipeline, [report])
    assert planner.plan("q", pipeline, batch_of(2, MB)).operations[0].expected_ms == expected
    planner.tune("q")
    assert planner.plan("q", pipeline, batch_of(3, MB)).operations[0].expected_ms == pytest.approx(
        99.0
    )
    for _ in range(5):
        planner.heard("q", pipeline, [report, BatchReport(9, visible_ms=1.0)])
        planner.tune("q")
    devices = planner.explain("q", 10_000.0)
    assert devices is not None
    assert [plan.measured_ms for plan in devices.plans] == [None, None, 200.0]


def test_explain_has_path_device_reason_expected_and_measured_by_operation() -> None:
    planner = DevicePlanner(NoCalibrations())
    pipeline = pipeline_of("filter", "aggregate", "sort", paths=("columnar",))
    batch = batch_of(5, 30 * KB)
    plan = planner.plan("q", pipeline, batch)
    assert [operation.device for operation in plan.operations][:2] == ["cpu", "cpu"]
    steps = (OperationReport(0, "cpu", 3.0, 30 * KB, 9, 1, 2), OperationReport(2, "cpu", 1.0))
    report = PlanReport("columnar", 30.0, 1, 30 * KB, 9, 26.0, operations=steps)
    planner.heard("q", pipeline, [BatchReport(5, visible_ms=100.0, plan=report)])
    devices = planner.explain("q", batch.at_ms + 250.0)
    assert devices is not None
    (explained,) = devices.plans
    assert (explained.ago_ms, explained.cut, explained.ran_path) == (250.0, 5, "columnar")
    assert (explained.expected_ms, explained.measured_ms) == (plan.expected_ms, 30.0)
    first, second, third = (operation.measured_ms or 0.0 for operation in explained.operations)
    assert first + second == pytest.approx(3.0)
    assert second > first
    assert third == 1.0
    assert all(operation.reason for operation in explained.operations)
    assert devices.inflection_bytes is not None
    assert "not calibrated before" in devices.calibration
    assert devices.machines == ("1 x cpu x with 8 cores, gpu y, CUDA 13.0",)
    assert planner.explain("nobody", 0.0) is None


def test_fallbacks_are_counted_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    planner = DevicePlanner(NoCalibrations())
    pipeline = pipeline_of("sort", devices="gpu")
    for cut in (1, 2, 3):
        planner.plan("q", pipeline, batch_of(cut, MB))
        lost = FallbackReport("gone", 2, "CUDA error 719")
        report = PlanReport("columnar", 9.0, 2, MB, 9, fallbacks=(lost,), splits=4)
        planner.heard("q", pipeline, [BatchReport(cut, visible_ms=9.0, plan=report)])
        planner.tune("q")
    assert caplog.text.count("a GPU was lost") == 1
    # A worker that is killed sends no report: it cannot be the cause of one.
    assert "killed" not in caplog.text
    assert caplog.text.count("split because a GPU is full") == 1
    assert "CUDA error 719" in caplog.text
    devices = planner.explain("q", 0.0)
    assert devices is not None
    assert (devices.fallbacks, devices.splits) == ({"gone": 6}, 12)
    assert any(note.startswith("6 tasks planned for a GPU") for note in devices.notes)


def test_other_operations_begin_anew_and_other_machines_do_not() -> None:
    planner = DevicePlanner(NoCalibrations())
    sorting = pipeline_of("sort", devices="cpu")
    shipped = planner.plan("other", sorting, batch_of(1, MB)).operations[0].expected_ms
    truth = TrueMachine(
        {part: type(line)(9 * line.fixed, 9 * line.slope) for part, line in DEFAULT_LINES.items()},
        noise=0.0,
    )
    run_batches(planner, sorting, truth, range(2, 9), MB)
    learned = planner.plan("q", sorting, batch_of(10, MB)).operations[0].expected_ms
    assert shipped is not None
    assert learned == pytest.approx(9 * shipped, rel=0.05)
    more = type(GPU_MACHINE)("cpu x", 8, "gpu y", "13.0", gpus=1, count=3)
    same_kind = pipeline_of("sort", devices="cpu", machines=(more,))
    assert planner.plan("q", same_kind, batch_of(11, MB)).operations[0].expected_ms == learned
    elsewhere = pipeline_of("sort", devices="cpu", machines=(CPU_MACHINE,))
    assert planner.plan("q", elsewhere, batch_of(12, MB)).operations[0].expected_ms == learned
    twice = pipeline_of("sort", "sort", devices="cpu", machines=(CPU_MACHINE,))
    assert planner.plan("q", twice, batch_of(13, MB)).operations[0].expected_ms == shipped


def test_a_machine_is_calibrated_by_its_queries_for_the_next_server(tmp_path: Path) -> None:
    truth = TrueMachine(true_lines(random.Random(3)), noise=0.0)
    pipeline = pipeline_of("filter", "sort", devices="cpu")
    planner = DevicePlanner(CalibrationFiles(tmp_path))
    run_batches(planner, pipeline, truth, range(1, 2 + SAVE_EVERY // 3), MB)
    written = [path.name for path in tmp_path.iterdir()]
    assert written == [f"{machine_of(GPU_MACHINE).key}.json"]
    planner.close()
    later = DevicePlanner(CalibrationFiles(tmp_path))
    expected = later.plan("new", pipeline, batch_of(1, MB, MB)).expected_ms
    parts = ("worker", "filter@cpu", "sort@cpu")
    true_ms = sum(truth.lines[part].at(MB) for part in parts)
    assert expected == pytest.approx(2 * true_ms, rel=0.1)
    devices = later.explain("new", 0.0)
    assert devices is not None
    assert "was calibrated by" in devices.calibration


class OfElsewhere(NoCalibrations):
    """A folder whose calibration is of another machine."""

    def load(self, machine: Machine) -> Calibration | None:
        raise BadCall(f"it is of another machine than {machine}", code="other_machine")


def test_a_calibration_of_another_machine_is_said_and_not_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    planner = DevicePlanner(OfElsewhere())
    pipeline = pipeline_of("sort")
    planner.plan("q", pipeline, batch_of(1, MB))
    planner.plan("r", pipeline, batch_of(1, MB))
    assert caplog.text.count("of another machine than cpu x with 8 cores") == 1
    devices = planner.explain("q", 0.0)
    assert devices is not None
    assert "of another machine" in devices.calibration


def test_without_a_gpu_explain_says_what_one_would_change() -> None:
    planner = DevicePlanner(NoCalibrations())
    pipeline = pipeline_of("filter", "sort", machines=(CPU_MACHINE,), gpu_workers=2)
    for cut in range(1, 5):
        planner.plan("q", pipeline, batch_of(cut, 4 * MB, 4 * MB))
    devices = planner.explain("q", 0.0)
    assert devices is not None
    assert "--calibration FILE" in devices.notes[-1]
    assert devices.inflection_bytes is None
    calibration = machine_costs(DEFAULT_LINES).calibration()
    change, gain = device_sentences(calibration, devices)
    assert change.startswith("with a gpu y here it would take: ")
    assert "sort in 4 of 4" in change
    assert "some of the costs here were not measured" in gain
    without = machine_costs(DEFAULT_LINES, machine_of(CPU_MACHINE)).calibration()
    assert "has no GPU either" in device_sentences(without, devices)[0]
    unplanned = msgspec.structs.replace(devices, plans=())
    assert "was planned lately" in device_sentences(calibration, unplanned)[0]
    assert "was planned lately" in device_sentences(calibration, None)[0]


def test_the_first_probe_in_a_worker_needs_the_time_that_one_takes_to_start() -> None:
    pipeline = pipeline_of("filter", machines=(CPU_MACHINE,), paths=("panes", "columnar"))
    probes = {}
    for spare_ms in (1_000.0, 5_000.0):
        planner = DevicePlanner(NoCalibrations())
        plans = [
            planner.plan("q", pipeline, batch_of(cut, MB, spare_ms=spare_ms))
            for cut in range(1, 100)
        ]
        probes[spare_ms] = sum(plan.is_probe for plan in plans)
    assert probes == {1_000.0: 0, 5_000.0: 2}


def test_a_text_that_changes_with_every_batch_forgets_nothing() -> None:
    planner = DevicePlanner(NoCalibrations())
    for cut in (1, 2, 3):
        operations = (OperationBody("sort", f"at {cut} o'clock"),)
        pipeline = pipeline_of(devices="cpu", operations=operations)
        planner.plan("q", pipeline, batch_of(cut, MB))
    devices = planner.explain("q", 0.0)
    assert devices is not None
    assert [plan.cut for plan in devices.plans] == [3, 2, 1]
