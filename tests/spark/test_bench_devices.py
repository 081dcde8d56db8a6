"""The devices suite in short, on Spark and without a GPU: its workloads, with answers checked."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.suites.devices import SUITE
from penstock_lab.suites.devices.modes import OURS, THROUGHPUT_ORIENTED
from penstock_lab.suites.devices.plans import Asked, asked_of

RATE = 200
MODES = (THROUGHPUT_ORIENTED, OURS)


def small_plan() -> Asked:
    """As if there were a GPU: that there is none is met by the batches."""
    asked = asked_of(
        quick=True,
        parts=("latency",),
        workloads=("cm1s",),
        modes=MODES,
        absence=lambda: None,
        cores=2,
    )
    plan = msgspec.structs.replace(
        asked.plan,
        traffic=(("constant", RATE),),
        warm_up_s=1.0,
        first_warm_up_s=2.0,
        measure_s=5.0,
        again_max=0,
    )
    return msgspec.structs.replace(asked, plan=plan)


def test_workloads_run_and_are_right_where_no_gpu_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    shown, file = io.StringIO(), tmp_path / "devices.json"
    outlet = Outlet(Console(file=shown, width=200), file)
    assert run(SUITE, small_plan(), tmp_path, lambda _: None, outlet), shown.getvalue()
    written = msgspec.json.decode(file.read_bytes())
    assert [record["run"]["system"] for record in written["runs"]] == list(MODES)
    for record in written["runs"]:
        assert record["run"]["verdict"]["kind"] in ("ok", "void: late generator"), record
        assert record["run"]["rows_checked"] > 0
        assert not record["planned"]["ways"].keys() & {"gpu", "split"}
    assert written["figures"]["headline.answers_wrong"] == 0
    assert written["figures"]["headline.runs_failed"] == 0
