"""Round trips to a worker, from what Spark reports of tasks, and plans summed up for a run."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.model.device_plans import ExplainedOperation, ExplainedPlan, QueryDevices
from penstock.observe.batch_ledger import BatchRecord
from penstock_lab.experiment.device_plans import planned_batches, ways_of
from penstock_lab.measure.worker_round_trips import BOOT, CODE, INIT, TOTAL, round_trip


def record(*totals_ms: int) -> BatchRecord:
    """A batch of a task that asked no worker, and of one for each of these times."""
    tasks: list[dict[str, Any]] = [{"stage": 1, "launched_ms": 0, "finished_ms": 1}]
    for total_ms in totals_ms:
        metrics = {BOOT: 1, INIT: 2, CODE: 4, TOTAL: total_ms}
        tasks.append({**tasks[0], "run_ms": total_ms + 5, "metrics": metrics})
    progress = {"batchId": 1, "timestamp": "2026-01-01T00:00:00Z", "durationMs": {}}
    return msgspec.convert({"progress": progress, "tasks": tasks}, BatchRecord, strict=False)


def test_parts_of_a_round_trip_are_medians_of_the_batches_that_had_one() -> None:
    # The first asks a worker that is not warm yet, the second has no rows.
    trip = round_trip([record(900), record(), record(20), record(24), record(30)], warm_up=1)
    assert trip is not None
    assert (trip.boot_ms, trip.init_ms, trip.code_ms) == (1, 2, 4)
    assert (trip.total_ms, trip.rest_ms, trip.task_ms) == (24, 17, 29)
    assert round_trip([record(), record(900)], warm_up=1) is None


def plan(path: Any, *devices: Any, ran: Any = None, tasks: tuple[Any, ...] = ()) -> ExplainedPlan:
    """A plan of these devices, and of each operation the tasks that ran it, by device."""
    ran_tasks: tuple[Any, ...] = tasks or ({},) * len(devices)
    operations = tuple(
        ExplainedOperation("sort", "", device, "", ran_tasks=each)
        for device, each in zip(devices, ran_tasks, strict=True)
    )
    return ExplainedPlan(
        1_000.0, 1, path, "why", "ours", False, 10, (640,), operations, ran_path=ran
    )


def test_batches_are_counted_by_the_way_they_took() -> None:
    plans = (
        plan("columnar", "cpu", "gpu"),
        plan("columnar", "gpu", "gpu"),
        plan("columnar", "gpu", ran="panes"),
        plan("panes"),
    )
    devices = QueryDevices("auto", "ours", (), "", plans, 40, 2, {"busy": 3})
    summed = planned_batches(devices)
    assert summed.ways == {"gpu": 0.25, "panes": 0.5, "split": 0.25}
    assert (summed.batches, summed.probes, summed.fallbacks) == (40, 2, {"busy": 3})


def test_devices_are_those_that_ran_and_not_those_that_were_planned() -> None:
    on_gpu, fell_back, some = {"gpu": 4}, {"cpu": 4}, {"gpu": 1, "cpu": 3}
    plans = (
        plan("columnar", "gpu", "gpu", ran="columnar", tasks=(on_gpu, on_gpu)),
        plan("columnar", "gpu", "gpu", ran="columnar", tasks=(fell_back, fell_back)),
        plan("columnar", "gpu", "gpu", ran="columnar", tasks=(some, some)),
        plan("columnar", "cpu", "gpu", ran="columnar", tasks=(fell_back, fell_back)),
    )
    assert ways_of(plans) == {"cpu": 0.5, "gpu": 0.25, "split": 0.25}
