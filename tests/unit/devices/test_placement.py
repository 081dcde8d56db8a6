"""Steps on several devices: who runs them, what is measured, and what happens without a device."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace

import msgspec
import pyarrow as pa
import pytest

from penstock.devices.gpu import worker_gpu
from penstock.devices.gpu.slots import try_slot
from penstock.devices.gpu_kind import GpuKind, _asked
from penstock.devices.operators.expressions import Call, Column, Literal
from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import (
    DEVICE_MODULES,
    DeviceRefused,
    EventTime,
    Filter,
    Pipeline,
    Project,
    Report,
    execute,
)
from penstock.devices.placement import placed_parts, run_placed
from penstock.errors import BadCall

TIMES = EventTime(Column(0))
LARGE = Filter(Call("greater", "boolean", (Column(1), Literal("bigint", 1))))
NAMED = Project((Column(1),))
STEPS = (TIMES, LARGE, NAMED)
ROWS = Rows(
    (pa.array([0, 1, 2]).cast(pa.timestamp("us", "UTC")), pa.array([1, 2, 3], pa.int64())), 3
)


@pytest.fixture
def abacus(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A device that runs what it is given as the CPU does, and tells of its transfers."""
    module = ModuleType("abacus")

    def on_abacus(pipeline: Pipeline, rows: Rows) -> tuple[Rows, Report]:
        rows, report = execute(pipeline, rows)
        return rows, msgspec.structs.replace(report, to_gpu_us=7, to_gpu_bytes=rows.count, splits=1)

    module.execute = on_abacus  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "abacus", module)
    monkeypatch.setitem(DEVICE_MODULES, "gpu", "abacus")
    return module


def test_neighbours_on_one_device_run_there_as_one() -> None:
    pipeline = Pipeline(STEPS, devices=("cpu", "cpu", "gpu"), gpu_workers=3)
    parts = placed_parts(pipeline)
    assert [(part.device, part.steps) for part in parts] == [("cpu", STEPS[:2]), ("gpu", STEPS[2:])]
    assert all(part.gpu_workers == 3 and part.devices == () for part in parts)
    assert [part.steps for part in placed_parts(Pipeline(STEPS, "gpu"))] == [STEPS]
    with pytest.raises(ValueError, match="shorter"):
        placed_parts(Pipeline(STEPS, devices=("cpu",)))


def test_each_operation_is_reported_from_its_device(abacus: ModuleType) -> None:
    rows, report = run_placed(Pipeline(STEPS, devices=("cpu", "cpu", "gpu")), ROWS)
    assert rows.columns[0].to_pylist() == [2, 3]
    # What notes event times is no operation of a plan, and its time is that of the next one.
    assert [(run.index, run.device, run.rows) for run in report.operations] == [
        (0, "cpu", 3),
        (1, "gpu", 2),
    ]
    assert (report.rows, len(report.event_times)) == (3, 1)
    assert (report.to_gpu_us, report.to_gpu_bytes, report.splits) == (7, 2, 1)
    assert report.fallbacks == ()


def test_a_device_that_is_not_there_is_the_cpu_instead_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(DEVICE_MODULES, "gpu")
    pipeline = Pipeline(STEPS, devices=("gpu", "gpu", "cpu"))
    rows, report = run_placed(pipeline, ROWS)
    assert rows.columns[0].to_pylist() == [2, 3]
    assert [fallback.cause for fallback in report.fallbacks] == ["absent"]
    assert [run.device for run in report.operations] == ["cpu", "cpu"]
    with pytest.raises(BadCall, match="set it to auto, panes or cpu"):
        run_placed(msgspec.structs.replace(pipeline, must_not_fall_back=True), ROWS)


def test_a_device_that_is_lost_is_the_cpu_instead_unless_it_is_insisted_on(
    abacus: ModuleType,
) -> None:
    def lost(pipeline: Pipeline, rows: Rows) -> tuple[Rows, Report]:
        raise DeviceRefused("gone", "the beads have fallen off")

    abacus.execute = lost  # type: ignore[attr-defined]
    rows, report = run_placed(Pipeline(STEPS, "gpu"), ROWS)
    assert rows.count == 2
    assert [(each.cause, each.text) for each in report.fallbacks] == [
        ("gone", "the beads have fallen off")
    ]
    with pytest.raises(BadCall, match="beads have fallen off; set it to auto"):
        run_placed(Pipeline(STEPS, "gpu", must_not_fall_back=True), ROWS)


def test_a_gpu_without_a_free_slot_fails_a_task_that_insists_on_it_and_the_setting_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cupy = ModuleType("cupy")
    device = SimpleNamespace(pci_bus_id="0000:01:00.0")
    cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        Device=lambda ordinal: device,
        runtime=SimpleNamespace(
            runtimeGetVersion=lambda: 13_000,
            driverGetVersion=lambda: 13_000,
            getDeviceCount=lambda: 1,
        ),
    )
    monkeypatch.setattr(worker_gpu, "imported_cupy", lambda: cupy)
    taken = try_slot(device.pci_bus_id, 1, tmp_path)
    assert taken is not None
    gpu = worker_gpu.WorkerGpu(tmp_path)

    def on_gpu(pipeline: Pipeline, rows: Rows) -> tuple[Rows, Report]:
        with gpu.used(pipeline.gpu_workers):
            return execute(pipeline, rows)

    module = ModuleType("full_gpu")
    module.execute = on_gpu  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "full_gpu", module)
    monkeypatch.setitem(DEVICE_MODULES, "gpu", "full_gpu")
    _, report = run_placed(Pipeline(STEPS, "gpu"), ROWS)
    assert [fallback.cause for fallback in report.fallbacks] == ["busy"]
    with pytest.raises(BadCall, match=r"raise spark\.penstock\.devices\.gpuWorkers") as refused:
        run_placed(Pipeline(STEPS, "gpu", must_not_fall_back=True), ROWS)
    assert refused.value.code == "no_device"
    taken.close()


def test_the_part_of_a_gpu_shrinks_when_a_query_with_a_higher_bound_shares_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool_story: list[object] = []

    class Pool:
        malloc = None

        def set_limit(self, size: int) -> None:
            pool_story.append(size)

        def free_all_blocks(self) -> None:
            pool_story.append("free")

    class Device(nullcontext):  # type: ignore[type-arg]
        pci_bus_id, mem_info = "0000:01:00.0", (0, 1_000)

    cupy = ModuleType("cupy")
    cupy.RawModule = lambda code: None  # type: ignore[attr-defined]
    cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        Device=Device,
        Stream=lambda non_blocking: nullcontext(),
        Event=lambda disable_timing: None,
        MemoryPool=Pool,
        using_allocator=lambda malloc: nullcontext(),
        runtime=SimpleNamespace(
            runtimeGetVersion=lambda: 13_000,
            driverGetVersion=lambda: 13_000,
            getDeviceCount=lambda: 1,
        ),
    )
    monkeypatch.setattr(worker_gpu, "imported_cupy", lambda: cupy)
    gpu = worker_gpu.WorkerGpu(tmp_path)
    with gpu.used(1) as cuda:
        cuda.tables[b"a static table"] = object()
    assert pool_story == [800]
    with gpu.used(8) as cuda:
        assert cuda.tables == {}
    assert pool_story == [800, "free", 100]
    for workers in (1, 8):  # others may be at it by now: it never grows again
        with gpu.used(workers):
            assert pool_story == [800, "free", 100]
    gpu.close()


class PlayedDriver:
    """The driver's library with two devices, or an error instead of their number."""

    def __init__(self, count_error: int = 0) -> None:
        self._count_error = count_error

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
        values = {"cuDriverGetVersion": 13_010, "cuDeviceGetCount": 2, "cuDeviceTotalMem_v2": 4096}

        def call(*arguments: object) -> int:
            if name == "cuDeviceGetName":
                arguments[0].value = b"gpu y"  # type: ignore[attr-defined]
            elif name in values:
                arguments[0]._obj.value = values[name]  # type: ignore[attr-defined]
            return self._count_error if name == "cuDeviceGetCount" else 0

        return call


def test_the_kind_of_a_gpu_is_what_its_driver_answers() -> None:
    assert _asked(PlayedDriver()) == GpuKind("gpu y", "13.1", 2, 4096)  # type: ignore[arg-type]
    assert _asked(PlayedDriver(count_error=100)) is None  # type: ignore[arg-type]
