"""Calibrations: kept by kind of machine, learned from batches, refused where they do not belong."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from penstock.devices.calibration import (
    CalibratedLine,
    Calibration,
    Machine,
    MachineCosts,
    machine_of,
)
from penstock.devices.calibration_files import CalibrationFiles, read_calibration
from penstock.devices.components import DEFAULT_LINES, operation_part
from penstock.errors import BadCall
from penstock.model.device_plans import Device, MachineBody, OperationKind

HERE = Machine("cpu x", 8, "gpu y", "13.0")
ELSEWHERE = Machine("cpu x", 8)


def learned() -> Calibration:
    costs = MachineCosts(HERE)
    for size in (1e4, 1e5, 1e6, 1e7) * 5:
        costs.learn("sort@gpu", size, 2.0 + 1e-6 * size)
    return costs.calibration()


def test_every_operation_has_a_cost_on_every_device_before_anything_is_measured() -> None:
    for kind in get_args(OperationKind):
        for device in get_args(Device):
            assert operation_part(kind, device) in DEFAULT_LINES
    costs = MachineCosts(HERE)
    assert all(costs.line(part).at(1e6) > 0 for part in DEFAULT_LINES)
    assert costs.calibration().costs == {}


def test_the_key_of_a_machine_is_its_cpu_cores_gpu_and_cuda() -> None:
    body = MachineBody("cpu x", 8, "gpu y", "13.0", gpus=2, gpu_bytes=1, count=7)
    assert machine_of(body) == HERE
    assert machine_of(MachineBody("cpu x", 8, None, "13.0")) == ELSEWHERE
    others = [Machine("cpu z", 8, "gpu y", "13.0"), Machine("cpu x", 4, "gpu y", "13.0")]
    others += [Machine("cpu x", 8, "gpu z", "13.0"), Machine("cpu x", 8, "gpu y", "12.9")]
    assert len({HERE.key, ELSEWHERE.key, *(other.key for other in others)}) == 6
    assert str(HERE) == "cpu x with 8 cores, gpu y, CUDA 13.0"
    assert str(ELSEWHERE) == "cpu x with 8 cores, no GPU"


def test_a_calibration_is_kept_and_is_where_costs_begin(tmp_path: Path) -> None:
    files = CalibrationFiles(tmp_path / "calibrations")
    assert files.load(HERE) is None
    files.save(learned())
    kept = files.load(HERE)
    assert kept is not None
    assert kept == learned()
    assert files.load(ELSEWHERE) is None
    costs = MachineCosts(HERE, kept)
    assert costs.line("sort@gpu").at(1e5) == pytest.approx(2.1, rel=0.05)
    assert (costs.values("sort@gpu"), costs.values("sort@cpu")) == (20, 0)
    assert costs.line("sort@cpu") == DEFAULT_LINES["sort@cpu"]
    assert [path.suffix for path in (tmp_path / "calibrations").iterdir()] == [".json"]


def test_one_of_another_machine_is_refused_in_a_sentence(tmp_path: Path) -> None:
    files = CalibrationFiles(tmp_path)
    files.save(learned())
    (tmp_path / f"{HERE.key}.json").rename(tmp_path / f"{ELSEWHERE.key}.json")
    with pytest.raises(BadCall, match="is of another machine") as refused:
        files.load(ELSEWHERE)
    assert refused.value.code == "other_machine"
    assert str(HERE) in refused.value.message
    assert str(ELSEWHERE) in refused.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "holds no calibration"),
        (b"{}", "holds no calibration"),
        (
            (
                b'{"machine": {"cpu": "x", "cores": 1}, "costs": '
                b'{"sort@cpu": {"fixed_ms": -1, "ms_per_mb": 1}}}'
            ),
            "holds no calibration",
        ),
        (
            (
                b'{"machine": {"cpu": "x", "cores": 1}, "costs": '
                b'{"fly@cpu": {"fixed_ms": 1, "ms_per_mb": 1}}}'
            ),
            "costs of 'fly@cpu'",
        ),
        (b'{"machine": {"cpu": "x", "cores": 1}, "costs": {}, "format": 2}', "format 2"),
    ],
)
def test_a_file_that_is_no_calibration_is_refused(tmp_path: Path, text: bytes, words: str) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(text)
    with pytest.raises(BadCall, match=words) as refused:
        read_calibration(file)
    assert refused.value.code == "bad_calibration"
    with pytest.raises(BadCall, match="cannot be read"):
        read_calibration(tmp_path / "none.json")


def test_a_folder_that_cannot_be_written_stops_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "calibrations").write_text("a file")
    CalibrationFiles(tmp_path / "calibrations").save(learned())
    assert "cannot be written" in caplog.text


def test_costs_in_a_file_are_for_a_megabyte() -> None:
    line = CalibratedLine(2.0, 3.0).line
    assert line.at(1e6) == pytest.approx(5.0)
    decoded = msgspec.json.decode(msgspec.json.encode(learned()), type=Calibration)
    assert decoded.costs["sort@gpu"].ms_per_mb == pytest.approx(1.0, rel=0.2)
