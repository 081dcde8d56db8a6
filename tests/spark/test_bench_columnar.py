"""The columnar suite for real, at the smallest size that still has every path."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.suites import columnar

SMALL = columnar.Plan(
    repeats=1,
    batches=2,
    warm_up=1,
    small_batches=3,
    small_warm_up=1,
    rows=4_000,
    rows_small=1_000,
    rate=400,
    commit_rows=1_000,
    queries=("cm_job",),
)


def test_every_path_is_run_on_every_case_and_answers_alike(tmp_path: Path) -> None:
    words: list[str] = []
    shown = io.StringIO()
    path = tmp_path / "columnar.json"
    assert run(columnar.SUITE, SMALL, tmp_path, words.append, Outlet(Console(file=shown), path))
    written = json.loads(path.read_text())
    assert len(words) == columnar.SUITE.steps(SMALL) == len(written["runs"])
    filled, measured = written["runs"]
    assert filled["rows"] == 3 * 4_000 + 4 * 1_000
    assert list(measured["cases"]) == [case.name for case in SMALL.cases]
    figures = written["figures"]
    for case in SMALL.cases:
        paths = measured["cases"][case.name]
        windows = case.range_s // case.slide_s
        panes = [f"panes: {windows} windows per row, slide {case.slide_s} s"]
        assert {name: ran["notes"] for name, ran in paths.items()} == {
            "spark": ["left to Spark: spark.penstock.windows is spark"],
            "panes": panes,
            "auto": panes,
        }
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
    }
    assert "its stage below the shuffle" in shown.getvalue()
    assert [left.name for left in tmp_path.iterdir()] == ["columnar.json"]
