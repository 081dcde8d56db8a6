"""What the floor suite makes of its runs, without running them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from penstock.errors import Bug, TryAgain
from penstock_lab.cli.bench import bench
from penstock_lab.experiment.phases import Batch
from penstock_lab.experiment.worker import Job, ask
from penstock_lab.suites import floor, floor_batch, floor_log


def runs_of(spark: list[float], ours: list[float]) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = []
    for repeat, (their, our) in enumerate(zip(spark, ours, strict=True)):
        phases = {"walCommit": 40.0}
        runs += [
            {"system": "penstock", "repeat": repeat, "trigger_ms_p50": our, "phases_ms": phases},
            {"system": "spark", "repeat": repeat, "trigger_ms_p50": their, "phases_ms": phases},
            {"system": "append", "repeat": repeat, "append_ms_p50": 2.0 + repeat},
            {"system": "fetch", "repeat": repeat, "fetch_mb_per_s": 300.0 + repeat},
        ]
    return runs


def test_what_is_added_is_compared_within_each_repeat() -> None:
    # The machine was twice as slow in the last repeat, for both:
    #   spark      100  110  400
    #   penstock   130  150  460     added: 30  40  60
    found = {one.name: one for one in floor.figures(runs_of([100, 110, 400], [130, 150, 460]))}
    assert found["headline.over_spark_ms"].value == 40
    assert list(found["headline.over_spark_ms"].repeats) == [30, 40, 60]
    assert found["spark_ms_p50"].value == 110
    assert found["penstock_ms_p50"].value == 150
    assert found["append_ms_p50"].value == 3.0
    assert found["fetch_mb_per_s"].value == 301.0


def test_the_phases_of_both_systems_stand_side_by_side() -> None:
    assert floor.phases(runs_of([1, 1, 1], [2, 2, 2])) == {
        "walCommit": {"penstock": 40.0, "spark": 40.0}
    }


def test_the_systems_take_turns_and_each_run_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def answer(module: str, job: Job, timeout_s: float) -> dict[str, Any]:
        assert job.path.is_dir()
        asked.append((job.system, job.path.name))
        return {"trigger_ms_p50": 1.0, "append_ms_p50": 1.0, "fetch_mb_per_s": 1.0}

    monkeypatch.setattr(floor, "ask", answer)
    told: list[str] = []
    size = floor.Size(repeats=2)
    floor.run(size, tmp_path, told.append)
    assert [system for system, _ in asked] == [
        "fill",
        *("spark", "penstock", "append", "fetch"),
        *("penstock", "spark", "append", "fetch"),
    ]
    assert len({folder for system, folder in asked if system in ("spark", "penstock")}) == 4
    assert len(told) == floor.steps(size)
    assert list(tmp_path.iterdir()) == []


def test_expected_counts_are_those_of_the_numbers_that_were_fed() -> None:
    rows = 7 * floor_batch.ROWS
    counts = np.bincount(np.arange(rows) % floor_batch.KEYS, minlength=floor_batch.KEYS)
    assert (floor_batch.expected_counts(rows) == counts).all()


def test_a_wrong_count_in_the_output_is_refused() -> None:
    rows = 3 * floor_batch.ROWS
    batches = [Batch(n, floor_batch.ROWS, {}) for n in range(3)]
    counts = floor_batch.expected_counts(rows)
    right = pa.table({"key": np.arange(floor_batch.KEYS), "count": counts}).slice(0, rows)
    floor_batch.check_output(right, batches)
    counts[5] += 1
    counts[6] -= 1
    wrong = pa.table({"key": np.arange(floor_batch.KEYS), "count": counts}).slice(0, rows)
    with pytest.raises(Bug, match="wrong counts for 2"):
        floor_batch.check_output(wrong, batches)


def test_the_rows_of_the_log_are_of_the_size_they_claim() -> None:
    table = floor_log.rows(0, 100)
    assert abs(table.nbytes - floor_log.APPEND_BYTES) < 1_000
    assert table["n"].to_pylist() == list(range(100))


def test_a_worker_that_fails_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(TryAgain, match=r"ended with 1; it said: [\s\S]*KeyError: 'nothing'"):
        ask("penstock_lab.suites.floor_log", Job("nothing", str(tmp_path)), 60)


def test_an_unknown_suite_is_answered_with_those_there_are() -> None:
    said = CliRunner().invoke(bench, ["cellar"])
    assert said.exit_code == 2
    assert "there is no suite 'cellar'; there is floor" in said.output
