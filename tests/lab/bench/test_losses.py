"""What survives which loss stands beside every ratio of systems, and in the page of their suite."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from penstock_lab.baselines.task_graph.registry import PROTOCOLS
from penstock_lab.experiment import systems
from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.losses import LOSSES, LOST, STATE, beside
from penstock_lab.experiment.record import Measured
from penstock_lab.experiment.table import show_losses
from penstock_lab.measure.recoveries import Recovered
from penstock_lab.suites import commit, compared, floor, paper, recovery
from penstock_lab.suites.commit.cells import SYSTEMS as COMMIT
from penstock_lab.suites.commit.cells import Cell as CommitCell
from penstock_lab.suites.commit.runs import Record as CommitRecord
from penstock_lab.suites.floor.cells import QUICK
from penstock_lab.suites.floor.cells import SYSTEMS as FLOOR
from penstock_lab.suites.paper.cells import SYSTEMS as PAPER
from penstock_lab.suites.recovery.cells import SYSTEMS as RECOVERY
from support.bench_records import floor_runs, run_of
from support.paper_records import paper_records
from support.sources import ROOT

PAGES: dict[str, tuple[str, ...]] = {
    "commit": COMMIT,
    "nexmark": systems.FULL,
    "ysb": systems.QUICK,
    "recovery": tuple(RECOVERY),
    "paper": PAPER,
}
IN_LOCATION, IN_LOG = "{} in the checkpoint location", "{} in the log, one copy"


def test_every_system_says_what_it_loses_and_where_its_state_is() -> None:
    assert {*systems.SYSTEMS, *RECOVERY} == set(LOST)
    # What floor has of Spark shows no results; task graphs are not lost but run again.
    assert {*LOST, *FLOOR, *PROTOCOLS} == set(STATE)
    assert {len(lost) for lost in LOST.values()} == {len(LOSSES)}
    assert beside("tuned", "full").endswith(
        "tuned in the checkpoint location, full in the log, one copy"
    )


@pytest.mark.parametrize("page", PAGES)
def test_the_page_of_a_suite_has_the_losses_of_its_systems(page: str) -> None:
    lines = (ROOT / "docs" / "bench" / f"{page}.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    for system in PAGES[page]:
        lost = list(LOST[system])
        its_rows = [row for row in rows if row[1:] == lost and f"`{system}`" in row[0]]
        assert len(its_rows) == 1, system


def said(figures: list[Figure]) -> dict[str, str]:
    """Sentences of the figures by their names."""
    return {figure.name: figure.meaning for figure in figures}


def test_a_ratio_of_queries_says_where_both_sides_have_their_state() -> None:
    suite = compared.SUITES["nexmark"]
    records = [Measured(compared.Cell("q1"), run_of("q1", name, 0, 100)) for name in systems.QUICK]
    sentences = said(suite.figures(suite.plan_of(quick=True), records))
    for rival in ("tuned", "default"):
        for name in (f"Q1.ratio_p99_vs_{rival}", f"headline.ratio_p99_vs_{rival}_min"):
            assert IN_LOCATION.format(rival) in sentences[name]
            assert IN_LOG.format("penstock") in sentences[name]


def test_a_step_of_the_commit_says_where_both_sides_have_their_state() -> None:
    cell, batches = CommitCell("lr_join_30_1", "local", 0.0, True), [Timed(0, 0, 10, 100.0, 1.0)]
    records = [
        CommitRecord(cell, run_of(cell.query, name, 0, 100), "compared", batches, [100.0])
        for name in ("tuned", "asyncckpt")
    ]
    sentences = said(commit.SUITE.figures(commit.SUITE.plan_of(quick=True), records))
    step = sentences["lr_join_30_1.local.0s.step.asyncckpt.batch_p50_ratio"]
    assert step.endswith(beside("tuned", "asyncckpt"))


def test_a_recovery_says_where_both_sides_have_their_state() -> None:
    records = [Recovered(name, 0, {"driver.cold": 9.0}, 50) for name in RECOVERY]
    sentences = said(recovery.SUITE.figures(recovery.SUITE.plan_of(quick=True), records))
    assert sentences["headline.vs_spark"].endswith(beside("spark", "penstock"))
    assert sentences["headline.archive_gives"].endswith(beside("penstock-bare", "penstock"))


def test_a_batch_over_spark_s_says_where_both_sides_have_their_state() -> None:
    sentences = said(floor.SUITE.figures(QUICK, floor_runs([100.0], [50.0])))
    assert sentences["headline.vs_spark"].endswith(beside("spark", "penstock"))


def test_the_papers_ratios_say_where_every_side_has_its_state() -> None:
    sentences = said(paper.SUITE.figures(paper.SUITE.plan_of(quick=True), paper_records()))
    for name in ("CM1@2500.batch_p99_ratio", "headline.throughput_ratio_max"):
        for system in ("default", "zstream"):
            assert IN_LOCATION.format(system) in sentences[name]
        assert IN_LOG.format("full") in sentences[name]
    assert beside("default", "full") in sentences["LR2.batch_p99_ratio"]
    assert IN_LOG.format("full") in sentences["headline.batch_p99_ratio_max"]
    protocols = {name: words for name, words in sentences.items() if "_vs_" in name}
    assert "aligned in files that are synced" in protocols["headline.aligned_vs_marker_p99_max"]
    assert "unsafe nowhere" in protocols["headline.marker_vs_unsafe_p50_max"]


def test_the_losses_of_the_systems_that_were_run_are_shown() -> None:
    out = io.StringIO()
    show_losses(Console(file=out, width=140), systems.QUICK)
    lines = out.getvalue().splitlines()
    assert any("default, tuned" in line and "files not synced" in line for line in lines)
    assert any("penstock" in line and "8 batches of state" in line for line in lines)
