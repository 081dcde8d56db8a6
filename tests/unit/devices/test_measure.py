"""Operations are measured on both devices, and a calibration is fitted to what they took."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from penstock.cli.calibrate import calibrate
from penstock.devices import gpu
from penstock.devices.calibration import Machine
from penstock.devices.calibration_files import CalibrationFiles, read_calibration
from penstock.devices.components import DEFAULT_LINES, GPU_REFUSES
from penstock.devices.gpu import execution
from penstock.devices.measure import OperationTiming, gpu_refusal, measure
from penstock.devices.measured_calibration import KINDS, SIZES, calibrated
from penstock.devices.this_machine import this_machine
from penstock.fit.measured_line import measured_line
from penstock.model.device_plans import Device, OperationKind
from support.host_device import HostGpu

WITH_GPU = Machine("a processor", 4, "a device", "13.0")


@pytest.fixture
def host_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy where measuring looks for a GPU."""
    device = HostGpu()
    monkeypatch.setattr(
        gpu, "execute", lambda pipeline, rows: execution.execute(pipeline, rows, gpu=device)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", get_args(Device))
def test_every_operation_is_measured_on_both_devices(
    host_gpu: None, device: Device, kind: OperationKind
) -> None:
    timing = measure(device, kind, 1_000)
    assert (timing.device, timing.kind, timing.rows) == (device, kind, 1_000)
    assert timing.ms > 0.0
    assert timing.bytes > 10_000
    # A GPU does not parse, so that nothing is moved for it.
    is_moved = device == "gpu" and kind != "parse"
    assert (timing.to_gpu_bytes > 0, timing.to_cpu_bytes > 0) == (is_moved, is_moved)


def test_a_line_is_nearest_to_measurements_by_their_own_size() -> None:
    sizes = [4e3 * 4**step for step in range(9)]
    line = measured_line([(size, 0.5 + 2e-6 * size) for size in sizes])
    assert line.fixed == pytest.approx(0.5)
    assert line.slope == pytest.approx(2e-6)
    assert measured_line([(1e3, 2.0), (1e6, 1.0)]).slope == 0.0
    assert measured_line([(1e3, 1e-3), (1e6, 2.0)]).fixed == 0.0
    assert measured_line([(1e3, 2.0)]).fixed == pytest.approx(2.0)
    assert measured_line([]).at(5.0) == 0.0


def invented(device: Device, kind: OperationKind, rows: int) -> OperationTiming:
    size = 32 * rows
    if device == "cpu":
        return OperationTiming(device, kind, rows, size, 0.1 + size / 1e6)
    moved = (0.05 + size / 1e7, size)
    return OperationTiming(device, kind, rows, size, 0.4 + size / 1e8, *moved, *moved)


def test_a_calibration_has_every_operation_and_the_transfers_apart(tmp_path: Path) -> None:
    heard: list[OperationTiming] = []
    made = calibrated(WITH_GPU, measure=invented, heard=heard.append)
    taken = [kind for kind in KINDS if kind not in GPU_REFUSES]
    operations = {*(f"{kind}@cpu" for kind in KINDS), *(f"{kind}@gpu" for kind in taken)}
    assert made.costs.keys() == {*operations, "to_gpu", "to_cpu"} < DEFAULT_LINES.keys()
    assert made.costs["sort@cpu"].ms_per_mb == pytest.approx(1.0)
    assert made.costs["sort@gpu"].fixed_ms == pytest.approx(0.4)
    assert made.costs["to_gpu"].ms_per_mb == pytest.approx(0.1)
    assert len(heard) == len(SIZES) * (len(KINDS) + len(taken))
    files = CalibrationFiles(tmp_path)
    files.save(made)
    assert files.load(WITH_GPU) == made


def test_kinds_that_no_gpu_takes_are_known() -> None:
    assert {kind for kind in KINDS if gpu_refusal(kind) is not None} == GPU_REFUSES


def test_a_machine_without_a_gpu_is_calibrated_for_its_cpu() -> None:
    made = calibrated(Machine("a processor", 4), SIZES[:3], measure=invented)
    assert made.costs.keys() == {f"{kind}@cpu" for kind in KINDS}


def test_the_command_writes_the_calibration_of_this_machine(tmp_path: Path) -> None:
    result = CliRunner().invoke(calibrate, [str(tmp_path), "--largest", "1"])
    assert result.exit_code == 0, result.output
    (file,) = tmp_path.glob("*.json")
    assert file.stem == this_machine().key
    assert read_calibration(file).machine == this_machine()
    assert "sort@cpu" in result.output
