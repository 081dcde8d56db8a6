"""The columnar suite for real, at the smallest size that still has every path."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.suites.columnar import SUITE
from penstock_lab.suites.columnar.cells import Plan

SMALL = Plan(
    repeats=1,
    batches=2,
    warm_up=1,
    small_batches=3,
    small_warm_up=1,
    rows=4_000,
    rows_small=1_000,
    rate=400,
    commit_rows=1_000,
    learning_batches=8,
    queries=("cm_job",),
)


def test_every_path_is_run_on_every_case_and_answers_alike(tmp_path: Path) -> None:
    words: list[str] = []
    shown = io.StringIO()
    path = tmp_path / "columnar.json"
    assert run(SUITE, SMALL, tmp_path, words.append, Outlet(Console(file=shown), path))
    written = json.loads(path.read_text())
    assert len(words) == SUITE.steps(SMALL) == len(written["runs"])
    filled, learned, measured = written["runs"]
    assert filled["rows"] == 3 * 4_000 + 4 * 1_000
    # The first batch of a run has nothing to plan yet.
    assert learned["planned"]["batches"] == SMALL.learning_batches - 1
    assert list(measured["cases"]) == [case.name for case in SMALL.cases]
    figures = written["figures"]
    for case in SMALL.cases:
        paths = measured["cases"][case.name]
        windows = case.range_s // case.slide_s
        panes = [f"panes: {windows} windows per row, slide {case.slide_s} s"]
        device, *of_panes = paths["cpu"].pop("notes")
        assert device.startswith("cpu: ")
        paths["cpu"]["notes"] = of_panes
        assert {name: ran["notes"] for name, ran in paths.items() if name != "auto"} == {
            "spark": ["left to Spark: spark.penstock.devices is spark"],
            "panes": panes,
            "cpu": panes,
        }
        # Batches of `auto` were planned, whichever way they took; those of `spark` never are.
        assert [paths[name]["ways"] for name in ("spark", "panes", "cpu")] == [
            {},
            {"panes": 1.0},
            {"cpu": 1.0},
        ]
        assert sum(paths["auto"]["ways"].values()) == pytest.approx(1.0, abs=0.01)
        assert len({ran["rows"] for ran in paths.values()}) == 1
        for name, ran in paths.items():
            assert 0 < ran["stage_ms_p50"] < ran["ms_p50"]
            assert figures[f"{case.name}.{name}_ms_p50"] == ran["ms_p50"]
        assert figures[f"{case.name}.ratio"] == pytest.approx(
            paths["spark"]["ms_p50"] / paths["auto"]["ms_p50"], abs=1e-3
        )
    assert {name for name in figures if name.startswith("headline.")} == {
        "headline.ratio_expanding_min",
        "headline.ratio_small_min",
        "headline.worst_choice",
        "headline.worker_ms_p50",
    }
    trip = measured["round_trip"]
    assert 0 < trip["total_ms"] <= trip["task_ms"]
    assert figures["headline.worker_ms_p50"] == trip["total_ms"]
    assert "its stage below the shuffle" in shown.getvalue()
    assert "no batch of auto was planned" not in shown.getvalue()
    assert [left.name for left in tmp_path.iterdir()] == ["columnar.json"]
