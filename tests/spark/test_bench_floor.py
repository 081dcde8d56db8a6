"""The floor suite for real, at the smallest size that still has every kind of run."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_lab.suites import floor

pytestmark = pytest.mark.spark

SMALL = floor.Size(repeats=1, batches=4, warm_up=2, fetch_mb=8)


def test_every_run_answers_and_the_figures_add_up(tmp_path: Path) -> None:
    told: list[str] = []
    result, figures = floor.run(SMALL, tmp_path, told.append)
    assert [run["system"] for run in result.runs] == [
        *("fill", "spark", "penstock", "append", "fetch")
    ]
    assert len(told) == floor.steps(SMALL)
    assert set(result.figures) == {
        "spark_ms_p50",
        "penstock_ms_p50",
        "headline.over_spark_ms",
        "append_ms_p50",
        "fetch_mb_per_s",
    }
    found = result.figures
    added = found["penstock_ms_p50"] - found["spark_ms_p50"]
    assert found["headline.over_spark_ms"] == pytest.approx(added)
    assert min(found[one] for one in found if not one.startswith("headline")) > 0
    assert {"walCommit", "addBatch", "commitOffsets"} <= set(floor.phases(result.runs))
    assert [figure.name for figure in figures] == list(found)
    assert list(tmp_path.iterdir()) == []
