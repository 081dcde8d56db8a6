"""The protocols suite in short. It needs no Spark, but processes and seconds as the others do."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
from rich.console import Console

from penstock_lab.experiment.outlet import Outlet
from penstock_lab.suites.protocols import suite
from penstock_lab.suites.protocols.plan import plan_of


def test_a_short_run_of_every_protocol_is_right_and_written(tmp_path: Path) -> None:
    small = msgspec.structs.replace(
        plan_of(quick=True, queries=("q4",), intervals_ms=(20,), rate=500, log="embedded"),
        repeats=1,
        measure_s=1.0,
        warm_up_s=0.3,
        quiet_s=0.3,
    )
    told: list[str] = []
    out = Console(file=io.StringIO(), width=120)
    file = tmp_path / "p.json"
    assert suite.run(small, tmp_path, told.append, Outlet(out, file, tmp_path / "p.png"))
    found = msgspec.json.decode(file.read_bytes())
    assert len(told) == small.steps == len(found["runs"])
    assert found["figures"]["headline.answers_wrong"] == 0
    assert found["figures"]["headline.runs_failed"] == 0
    for protocol in small.protocols:
        assert found["figures"][f"log.Q4.20ms.{protocol}.p50_ms"] > 0
    assert (tmp_path / "p.png").stat().st_size > 1_000
