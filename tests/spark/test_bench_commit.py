"""The commit suite in short, on Spark: every way to commit behind the query, beside Spark's own."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
from rich.console import Console

from penstock_lab.experiment.outlet import Outlet
from penstock_lab.suites.commit import suite
from penstock_lab.suites.commit.cells import BACK_TO_BACK, Cell, Group
from penstock_lab.suites.commit.plan import plan_of

SYSTEMS = ("tuned", "asyncckpt", "full")
CELL = Cell("lr_count_20_5", "remote20", BACK_TO_BACK, True, 500)


def test_a_short_run_of_every_way_to_commit_is_right_and_written(tmp_path: Path) -> None:
    small = msgspec.structs.replace(
        plan_of(quick=True),
        groups=(Group(SYSTEMS, (CELL,)),),
        repeats=1,
        measure_s=4.0,
        first_warm_up_s=4.0,
        growth=None,
        sustain=None,
        again_max=0,
    )
    told: list[str] = []
    out = Console(file=io.StringIO(), width=160)
    file, picture = tmp_path / "commit.json", tmp_path / "commit.png"
    assert suite.run(small, tmp_path, told.append, Outlet(out, file, picture))
    found = msgspec.json.decode(file.read_bytes())
    assert len(told) == small.steps == len(found["runs"]) == len(SYSTEMS)
    assert found["figures"]["headline.answers_wrong"] == 0
    assert found["figures"]["headline.runs_failed"] == 0
    for system in SYSTEMS:
        assert found["figures"][f"{CELL.name}.{system}.batch_p50_ms"] > 0
    assert picture.stat().st_size > 1_000
    steps = {run["system"]: set(run["steps"]) for run in found["runs"]}
    assert not steps["tuned"], "Spark's own commit has no steps of ours"
    for system in ("asyncckpt", "full"):
        assert steps[system] >= {"local write", "append state", "release", "marker", "copy"}
