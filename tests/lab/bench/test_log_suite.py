"""The log suite: its figures, without running it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from penstock.errors import BadCall
from penstock_lab.baselines.task_graph import q8
from penstock_lab.experiment import jetstream
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.measure.task_recovery import steps
from penstock_lab.suites import log
from penstock_lab.suites.log.cells import QUICK
from penstock_lab.suites.log.figures import figures
from support.bench_records import log_runs as runs


def test_the_figures_have_the_names_and_are_medians() -> None:
    by_name = {figure.name: figure for figure in figures(QUICK, runs())}
    for backend in ("embedded", "jetstream"):
        for size in ("100B", "16KiB", "128KiB"):
            for writers in ("w1", "w16"):
                for key in ("append_per_s", "append_ms_p50", "append_ms_p99"):
                    assert f"{backend}.{size}.{writers}.{key}" in by_name
        assert by_name[f"{backend}.deliver_ms_p50"].value == 3.0
        assert f"{backend}.deliver_ms_p99" in by_name
    assert by_name["headline.tag_read_ratio"].value == pytest.approx(0.95)
    assert by_name["headline.start_ratio"].value == 1.2
    assert by_name["headline.recovery_ratio"].value == 5.0
    assert by_name["recovery_log_ratio"].value == 20.0
    assert by_name["recovery_log_ms"].value == 40.0


def test_what_sums_the_log_up_is_the_embedded_one_and_jetstream_has_its_own_without_goals() -> None:
    by_name = {figure.name: figure for figure in figures(QUICK, runs())}
    assert by_name["headline.recovery_ratio"].goal is not None
    assert by_name["jetstream.recovery_ratio"].value == 6.0
    assert by_name["jetstream.tag_read_ratio"].value == pytest.approx(0.95)
    assert by_name["jetstream.tag_read_many_mb_per_s"].value == 95
    assert "0.2 GB over 0.02 GB" in by_name["jetstream.start_ratio"].meaning
    assert "2 GB over 0.2 GB" in by_name["headline.start_ratio"].meaning
    of_jetstream = [figure for figure in by_name.values() if figure.name.startswith("jetstream.")]
    assert all(figure.goal is None for figure in of_jetstream)


def test_a_run_cut_short_has_the_figures_it_came_to() -> None:
    assert figures(QUICK, []) == []
    assert {figure.name.split(".")[0] for figure in figures(QUICK, runs()[:1])} == {"embedded"}


def test_the_rows_that_are_recovered_are_the_workloads() -> None:
    made = list(steps(rate=5_000, seconds=1, step_ms=100))
    assert len(made) == 10
    kinds = [row[0] for rows in made for row in rows]
    assert (kinds.count(q8.PERSON), kinds.count(q8.AUCTION)) == (100, 300)


def test_a_backend_that_cannot_run_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream, "nats_program", lambda: None)
    with pytest.raises(BadCall, match="there is no nats-server here"):
        run(log.SUITE, QUICK, tmp_path, print, Outlet(Console(file=io.StringIO())))
    assert list(tmp_path.iterdir()) == []
