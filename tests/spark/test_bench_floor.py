"""The floor suite for real, at the smallest size that still has every kind of run."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock.errors import TryAgain
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.suites import floor
from penstock_lab.suites.floor import runs as floor_runs
from penstock_lab.suites.floor.cells import SYSTEMS, Size
from support.sources import ROOT

pytestmark = pytest.mark.spark

SMALL = Size(
    repeats=1, batches=4, warm_up=2, fetch_mb=8, auctions=2_000, evict_batches=3, evict_warm_up=1
)


def test_every_run_answers_and_the_figures_are_those_of_the_runs(tmp_path: Path) -> None:
    steps_told: list[str] = []
    shown = io.StringIO()
    path = tmp_path / "floor.json"
    assert run(floor.SUITE, SMALL, tmp_path, steps_told.append, Outlet(Console(file=shown), path))
    written = json.loads(path.read_text())
    runs = {record["system"]: record for record in written["runs"]}
    assert list(runs) == ["fill", "spark", "spark+switches", "penstock", "evict", "append", "fetch"]
    assert len(steps_told) == SMALL.steps == len(written["runs"])
    figures = {
        name: value for name, value in written["figures"].items() if not name.startswith("floor.")
    }
    added = runs["penstock"]["trigger_ms_p50"] - runs["spark"]["trigger_ms_p50"]
    assert figures == {
        "spark_ms_p50": pytest.approx(runs["spark"]["trigger_ms_p50"], abs=1e-3),
        "spark_switches_ms_p50": pytest.approx(runs["spark+switches"]["trigger_ms_p50"], abs=1e-3),
        "penstock_ms_p50": pytest.approx(runs["penstock"]["trigger_ms_p50"], abs=1e-3),
        "headline.over_spark_ms": pytest.approx(added, abs=1e-3),
        "headline.vs_spark": pytest.approx(
            runs["spark"]["trigger_ms_p50"] / runs["penstock"]["trigger_ms_p50"], abs=1e-3
        ),
        "headline.ledger_explained": pytest.approx(runs["penstock"]["explained"], abs=1e-3),
        "headline.requests_per_batch": pytest.approx(runs["penstock"]["requests"], abs=1e-3),
        "headline.visible_after_batch_ms_p50": pytest.approx(
            runs["penstock"]["visible_ms_p50"], abs=1e-3
        ),
        "evict.spark_ms_p50": pytest.approx(runs["evict"]["evict_spark_ms_p50"], abs=1e-3),
        "evict.ours_ms_p50": pytest.approx(runs["evict"]["evict_ours_ms_p50"], abs=1e-3),
        "evict.batch_ratio": pytest.approx(
            runs["evict"]["evict_spark_ms_p50"] / runs["evict"]["evict_ours_ms_p50"], abs=1e-3
        ),
        "append_ms_p50": pytest.approx(runs["append"]["append_ms_p50"], abs=1e-3),
        "fetch_mb_per_s": pytest.approx(runs["fetch"]["fetch_mb_per_s"], abs=1e-3),
    }
    for system in SYSTEMS:
        record = runs[system]
        assert record["batches"] == SMALL.batches
        assert 0 < record["trigger_ms_p50"] <= record["trigger_ms_p99"]
        # No phase is longer than the batch that it is a part of.
        assert {"walCommit", "addBatch", "commitOffsets"} <= set(record["phases_ms"])
        assert max(record["phases_ms"].values()) <= record["trigger_ms_p99"]
    assert runs["penstock"]["explained"] > 0.8
    # Admission with the rows, for each of two tasks its output and state, the marker with offsets.
    assert runs["penstock"]["requests"] == 4
    assert runs["penstock"]["task_ms"]["fetch"] == 0
    steps = {"planning", "build job", "tasks", "commit", "other"}
    assert steps <= set(runs["penstock"]["wall_ms"])
    for step in steps:
        name = f"floor.step.{step.replace(' ', '_')}_ms"
        assert written["figures"][name] == pytest.approx(
            runs["penstock"]["wall_ms"][step], abs=1e-3
        )
    assert runs["penstock"]["task_ms"]["sink"] > 0
    assert runs["append"]["appends"] == 200
    # What was filled is what Spark has read: whole entries of so many rows each.
    assert runs["fetch"]["rows"] == runs["fill"]["entries"] * 256
    assert runs["fetch"]["bytes"] >= runs["fetch"]["rows"] * 988
    assert "where a batch's time goes" in shown.getvalue()
    assert [path_of_result.name for path_of_result in tmp_path.iterdir()] == ["floor.json"]


@pytest.mark.parametrize("query", ["cm_category", "lr_join"])
def test_a_query_has_its_ledger_with_every_mechanism_and_without_one(
    query: str, tmp_path: Path
) -> None:
    shown = io.StringIO()
    path = tmp_path / "floor.json"
    size = msgspec.structs.replace(
        SMALL, queries=(query,), without=("watermark", "hadoopConf"), turn_batches=3
    )
    outlet = Outlet(Console(file=shown), path)
    assert run(floor.SUITE, size, tmp_path, lambda _: None, outlet)
    written = json.loads(path.read_text())
    assert [list(record["variants"]) for record in written["runs"]] == [
        ["penstock", "watermark"],
        ["hadoopConf"],
    ]
    variants = {
        name: measured
        for record in written["runs"]
        for name, measured in record["variants"].items()
    }
    figures = written["figures"]
    for name in ("watermark", "hadoopConf"):
        taken = figures[f"{query}.without.{name}_ms_p50"]
        assert taken == pytest.approx(variants[name]["trigger_ms_p50"], abs=1e-3)
    assert figures[f"{query}.ledger_explained"] > 0.7
    # A watermark that is written into generated code has it compiled in every batch.
    ours, literal = (variants[n]["counters"]["compilations"] for n in ("penstock", "watermark"))
    assert ours < literal
    assert f"the ledger of our batch, {query}" in shown.getvalue()


def test_a_planted_wrong_count_ends_the_suite_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    monkeypatch.setattr(floor_runs, "BATCH_WORKER", "support.wrong_micro_batches")
    path = tmp_path / "floor.json"
    outlet = Outlet(Console(file=io.StringIO()), path)
    with pytest.raises(TryAgain, match=r"the state store has wrong counts for \d+ of 20000 keys"):
        run(floor.SUITE, SMALL, tmp_path, lambda _: None, outlet)
    # What was measured before is written, and none of it passes for a figure.
    written = json.loads(path.read_text())
    assert [record["system"] for record in written["runs"]] == ["fill"]
    assert written["figures"] == {}
    assert [path_of_result.name for path_of_result in tmp_path.iterdir()] == ["floor.json"]
