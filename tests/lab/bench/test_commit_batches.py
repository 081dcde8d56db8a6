"""Batch times from Spark's progress, how they grow, and what memory a process had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock_lab.experiment import jvm_memory as memory
from penstock_lab.experiment.batch_times import Timed, growth, timed, within


def progress(**changed: Any) -> dict[str, Any]:
    batch_progress = {
        "batchId": 7,
        "timestamp": "2026-01-02T03:04:05.678Z",
        "numInputRows": 40,
        "durationMs": {"triggerExecution": 250, "addBatch": 200},
        "stateOperators": [{"commitTimeMs": 30}, {"commitTimeMs": 12}],
    }
    return {**batch_progress, **changed}


def test_a_progress_is_read_for_when_a_batch_began_and_what_it_took() -> None:
    assert timed(progress()) == Timed(7, 1_767_323_045_678, 40, 250.0, 42.0)


def test_a_trigger_that_ran_nothing_took_nothing() -> None:
    assert timed(progress(durationMs={}, stateOperators=[])).took_ms == 0.0


def batch(began_ms: int, took_ms: float, rows: int = 10) -> Timed:
    return Timed(0, began_ms, rows, took_ms, 0.0)


def test_a_batch_counts_if_it_ran_in_the_measured_stretch_be_it_in_part() -> None:
    #        100          200
    #   |-a-| |            |
    #     |-b-|--|         |
    #         |  |---c-----|---|
    #         |            | |-d-|
    a, b, c, d = batch(60, 30), batch(80, 40), batch(130, 90), batch(205, 20)
    assert within([a, b, c, d], 100, 200) == [b, c]


def test_a_batch_without_rows_does_not_count() -> None:
    assert within([batch(100, 10, rows=0)], 0, 1_000) == []


def test_growth_is_the_last_quarter_over_the_first_by_their_medians() -> None:
    # first quarter 100, 100, 900: median 100; last 150, 150, 1: median 150
    took = [100, 100, 900, 1, 1, 1, 1, 1, 1, 150, 150, 1]
    assert growth([float(took_ms) for took_ms in took]) == pytest.approx(1.5)


def test_too_few_batches_have_no_growth() -> None:
    assert growth([1.0, 2.0, 3.0]) is None


def test_the_peak_of_memory_is_what_the_kernel_says(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "status").write_text("Name:\tjava\nVmHWM:\t  524288 kB\nVmRSS:\t 1 kB\n")
    assert memory.peak_mb(42, tmp_path) == 512.0
    assert memory.peak_mb(43, tmp_path) is None


def test_forgetting_a_peak_says_whether_it_could(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    assert memory.forget_peak(42, tmp_path)
    assert (tmp_path / "42" / "clear_refs").read_text() == "5"
    assert not memory.forget_peak(43, tmp_path)
