"""What the GPU of another machine would change here: the CPU reckoned with is the one here."""

from __future__ import annotations

import pytest

from penstock.devices.components import DEFAULT_LINES
from penstock.devices.explain import explained_devices
from penstock.devices.query_planning import QueryPlanning
from penstock.devices.what_if import device_sentences
from penstock.fit.line import Line
from penstock.model.device_plans import OperationKind, QueryDevices
from support.device_worlds import CPU_MACHINE, batch_of, machine_costs, pipeline_of

MB = 1_000_000
GPU_LINES = {"sort@gpu": Line(1.0, 1e-7), "to_gpu": Line(0.1, 1e-7), "to_cpu": Line(0.1, 1e-7)}


def explained(
    sort_ms_per_mb: float, panes: Line, *kinds: OperationKind, tasks: int = 1, workers: int = 1
) -> QueryDevices:
    """Two batches with tasks of 10 MB, on a machine without a GPU that sorts at this pace."""
    lines = {
        **DEFAULT_LINES,
        "sort@cpu": Line(0.1, sort_ms_per_mb / 1e6),
        "worker": Line(20.0, 1e-6),
        "path@panes": panes,
    }
    pipeline = pipeline_of(
        *kinds, machines=(CPU_MACHINE,), paths=("panes", "columnar"), gpu_workers=workers
    )
    planning = QueryPlanning(pipeline, [machine_costs(lines)])
    for cut in (1, 2):
        planning.plan(pipeline, batch_of(cut, *[10 * MB] * tasks))
    return explained_devices(planning, "", 0.0)


def sentences(devices: QueryDevices, there_ms_per_mb: float) -> list[str]:
    """By a calibration of a machine whose own CPU sorts at another pace."""
    lines = {**DEFAULT_LINES, **GPU_LINES, "sort@cpu": Line(0.1, there_ms_per_mb / 1e6)}
    return device_sentences(machine_costs(lines).calibration(), devices)


@pytest.mark.parametrize("there_ms_per_mb", [0.001, 1_000.0])
def test_the_cpu_of_the_calibrated_machine_does_not_count(there_ms_per_mb: float) -> None:
    slow_panes = Line(500.0, 1e-6)
    change, gain = sentences(explained(50.0, slow_panes, "sort"), there_ms_per_mb)
    assert "with a gpu y here it would take: sort in 2 of 2" in change
    # 30 ms to the worker; there 500 ms of sorting, or 2 ms and 1.1 ms for each way.
    assert "34.2 ms in workers with it, 530 ms in workers without it" in gain
    assert gain.endswith("takes 510 ms the cheapest way there is: it would pay")
    (nothing,) = sentences(explained(0.01, slow_panes, "sort"), there_ms_per_mb)
    assert "nothing would change: in none of the last 2 batches" in nothing


def test_a_gpu_that_is_faster_in_workers_need_not_pay() -> None:
    _, gain = sentences(explained(50.0, Line(5.0, 1e-7), "sort"), 50.0)
    assert gain.endswith("takes 6 ms the cheapest way there is: it would not pay")


def test_what_a_gpu_does_not_take_stays_here() -> None:
    change, _ = sentences(explained(50.0, Line(500.0, 1e-6), "parse", "sort"), 50.0)
    assert "sort in 2 of 2" in change
    assert "parse" not in change


def test_a_gpu_for_one_of_several_tasks_at_a_time_does_not_end_a_stage_earlier() -> None:
    slow_panes = Line(500.0, 1e-6)
    (nothing,) = sentences(explained(50.0, slow_panes, "sort", tasks=2), 50.0)
    assert nothing.endswith("; with gpuWorkers at 1 only some tasks at a time could have it")
    assert len(sentences(explained(50.0, slow_panes, "sort", tasks=2, workers=2), 50.0)) == 2
