"""A GPU that is taken, lost, too old or absent: the cause is told; what it does not take runs on
the CPU and is named."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.devices.gpu import worker_gpu
from penstock.devices.gpu.execution import execute
from penstock.devices.gpu.losses import cause_of
from penstock.devices.gpu.refusals import refusal, refusals
from penstock.devices.gpu.slots import try_slot
from penstock.devices.gpu.worker_gpu import WorkerGpu
from penstock.devices.operators.aggregate import Aggregate
from penstock.devices.operators.order import SortKey
from penstock.devices.pipeline import (
    DeviceRefused,
    EventTime,
    EventTimes,
    Filter,
    Grouped,
    Parse,
    Pipeline,
    Project,
    Sorted,
    Step,
)
from penstock.devices.pipeline import execute as execute_on_cpu
from penstock.errors import BadCall
from support.columns import call, column, listed, literal, rows
from support.host_device import HostGpu, cuda_error

WIDE = pa.decimal128(25, 2)


@pytest.mark.parametrize(
    ("step", "kinds", "sentence"),
    [
        (Parse(column(0), "csv", (("a", "int"),)), [pa.string()], "parsing of text"),
        (Project((column(0),)), [WIDE], "decimals of more than 18 digits"),
        (Filter(column(0)), [pa.bool_(), pa.list_(pa.int32())], "columns of list<"),
        (Project((call("soundex", "string", column(0)),)), [pa.string()], "the function soundex"),
        (Project((call("cast", "bigint", column(0)),)), [pa.float64()], "a cast from double"),
        (
            Filter(call("equal", "boolean", column(0), column(1))),
            [pa.decimal128(9, 2), pa.decimal128(9, 4)],
            "equal of decimal128",
        ),
        (
            Filter(call("contains", "boolean", column(0), column(0))),
            [pa.string()],
            "contains of two columns",
        ),
        (
            Project((call("add", "decimal(10,1)", column(0), column(0)),)),
            [pa.decimal128(9, 2)],
            "add with a result of decimal128",
        ),
        (
            Grouped((column(0),), (Aggregate("first", (column(0),), "int", "int"),)),
            [pa.int32()],
            "the function first",
        ),
    ],
)
def test_a_step_that_a_gpu_does_not_take_is_told_before_the_run(
    step: Step, kinds: list[pa.DataType], sentence: str
) -> None:
    told_sentence = refusal(step, kinds)
    assert told_sentence is not None
    assert told_sentence.startswith(sentence)


def test_times_of_any_zone_are_alike() -> None:
    later = call("less", "boolean", column(0), literal("timestamp", 5))
    assert refusal(Filter(later), [pa.timestamp("us", "Asia/Kathmandu")]) is None
    assert refusal(Filter(later), [pa.timestamp("us")]) is not None


def test_steps_that_are_refused_run_on_the_cpu_between_the_others() -> None:
    lines = rows([("string", ["1,2.5", "3,x", None])])
    total = Aggregate("sum", (column(0),), "decimal(12,1)", "decimal(22,1)")
    steps: tuple[Step, ...] = (
        Filter(call("is_not_null", "boolean", column(0))),
        Parse(column(0), "csv", (("a", "int"), ("b", "double"))),
        Project((call("cast", "decimal(12,1)", column(2)), column(1))),
        Grouped((column(1),), (total,)),
        Sorted((SortKey(column(0)),)),
    )
    made, report = execute(Pipeline(steps), lines, gpu=HostGpu())
    assert listed(made) == listed(execute_on_cpu(Pipeline(steps), lines)[0])
    assert report.step_devices == ("gpu", "cpu", "gpu", "gpu", "cpu")
    assert (report.rows, report.step_rows) == (3, (3, 2, 2, 2, 2))
    assert refusals(Pipeline(steps), [pa.string()])[-1] == "decimals of more than 18 digits"


def test_a_pipeline_of_which_nothing_is_taken_needs_no_gpu() -> None:
    steps = (Parse(column(0), "csv", (("a", "int"),)),)
    _, report = execute(Pipeline(steps), rows([("string", ["1"])]), gpu=WorkerGpu())
    assert report.step_devices == ("cpu",)


@pytest.mark.parametrize(
    ("steps", "kind", "sentence"),
    [
        (
            (
                Filter(call("is_not_null", "boolean", column(0))),
                Parse(column(0), "csv", (("a", "int"),)),
            ),
            "string",
            "does not take parse, step 2 of 2: parsing of text, which stays on the CPU; set it to",
        ),
        (
            (Project((column(0),)),),
            "decimal(25,2)",
            "does not take project, step 1 of 1: decimals of more than 18 digits, which stays",
        ),
    ],
)
def test_a_gpu_that_is_insisted_on_fails_at_any_step_that_it_does_not_take(
    steps: tuple[Step, ...], kind: str, sentence: str
) -> None:
    pipeline = Pipeline(steps, "gpu", must_not_fall_back=True)
    with pytest.raises(BadCall, match=re.escape(sentence)) as refused:
        execute(pipeline, rows([(kind, [None])]), gpu=HostGpu())
    assert refused.value.code == "no_device"


def test_a_gpu_that_is_insisted_on_adds_decimals_up() -> None:
    """The sum has more digits than a column may have there, and nothing comes after it."""
    total = Aggregate("sum", (column(1),), "decimal(12,2)", "decimal(22,2)")
    steps = (
        Filter(call("is_not_null", "boolean", column(1))),
        Grouped((column(0),), (total,)),
    )
    prices = [Decimal("9999999999.99"), Decimal("0.01"), None, Decimal("9999999999.99")]
    priced = rows([("int", [1, 1, 1, 2]), ("decimal(12,2)", prices)])
    pipeline = Pipeline(steps, "gpu", must_not_fall_back=True)
    made, report = execute(pipeline, priced, gpu=HostGpu())
    assert sorted(listed(made)) == sorted(listed(execute_on_cpu(pipeline, priced)[0]))
    assert report.step_devices == ()


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (MemoryError("out of memory"), "full"),
        (cuda_error(2), "full"),
        (cuda_error(35), "driver"),
        (cuda_error(100), "absent"),
        (cuda_error(46), "busy"),
        (cuda_error(700), "gone"),
        (ImportError("No module named 'cupy'"), "absent"),
        (RuntimeError("CuPy failed to load libnvrtc.so.13"), "absent"),
        (RuntimeError("Failed to find CUDA headers. Please install them"), "absent"),
        (ValueError("ours"), None),
    ],
)
def test_an_error_of_cuda_has_a_cause(error: Exception, cause: str | None) -> None:
    assert cause_of(error) == cause


def test_no_more_workers_are_at_a_device_than_it_may_have(tmp_path: Path) -> None:
    slots = [try_slot("0000:3B:00.0", 2, tmp_path) for _ in range(3)]
    assert [slot is not None for slot in slots] == [True, True, False]
    assert try_slot("0000:5E:00.0", 2, tmp_path) is not None
    assert slots[0] is not None
    slots[0].close()
    assert try_slot("0000:3B:00.0", 2, tmp_path) is not None


def test_the_slot_of_a_worker_that_is_killed_is_free_again(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from penstock.devices.gpu.slots import try_slot; "
        "slot = try_slot('a', 1, Path(sys.argv[1])); print(slot is not None, flush=True); input()"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline().strip() == "True"
    assert try_slot("a", 1, tmp_path) is None
    worker.kill()
    worker.communicate()
    assert try_slot("a", 1, tmp_path) is not None


def fake_cupy(driver: int, devices: int) -> Any:
    runtime = SimpleNamespace(
        runtimeGetVersion=lambda: 13000,
        driverGetVersion=lambda: driver,
        getDeviceCount=lambda: devices,
    )
    device = SimpleNamespace(pci_bus_id="0000:3B:00.0")
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, Device=lambda ordinal: device))


@pytest.mark.parametrize(
    ("driver", "devices", "cause"), [(12080, 1, "driver"), (13000, 0, "absent"), (13000, 1, "busy")]
)
def test_a_worker_that_cannot_have_a_gpu_says_why(
    driver: int, devices: int, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_gpu, "imported_cupy", lambda: fake_cupy(driver, devices))
    other = try_slot("0000:3B:00.0", 1, tmp_path)
    with pytest.raises(DeviceRefused) as refused, WorkerGpu(tmp_path).used(workers=1):
        pass
    assert refused.value.cause == cause
    assert other is not None
    other.close()


def test_a_worker_without_cupy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise ModuleNotFoundError("No module named 'cupy'")

    monkeypatch.setattr(worker_gpu, "imported_cupy", missing)
    with pytest.raises(DeviceRefused, match="install CuPy") as refused, WorkerGpu().used(workers=1):
        pass
    assert refused.value.cause == "absent"


def test_a_device_that_is_lost_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def lost() -> Any:
        asked.append(1)
        raise cuda_error(719)

    monkeypatch.setattr(worker_gpu, "imported_cupy", lost)
    gpu = WorkerGpu(tmp_path)
    for _ in range(2):
        with pytest.raises(DeviceRefused) as refused, gpu.used(workers=1):
            pass
        assert refused.value.cause == "gone"
    assert len(asked) == 1


def test_times_noted_on_a_device_count_a_missing_one_as_1970() -> None:
    at = rows([("timestamp", [None, 5_000_000])])
    _, report = execute(Pipeline((EventTime(column(0)),)), at, gpu=HostGpu())
    assert report.event_times == (EventTimes(2, 0, 5_000, 2_500.0),)
