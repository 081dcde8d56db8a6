"""The figures of the paper suite: lower bounds, the store, the rates that are found, and tables."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.search import Tried
from penstock_lab.suites.paper.batch_runs import chosen_rate, counted_batches, least_of_ours
from penstock_lab.suites.paper.cells import CM1, LR2, Cell
from penstock_lab.suites.paper.figures import figures
from penstock_lab.suites.paper.graph_runs import Rung, rate_by_rule
from penstock_lab.suites.paper.papers import CHECKPOINT_MS
from penstock_lab.suites.paper.plans import plan_of
from penstock_lab.suites.paper.runs import Record, for_file
from penstock_lab.suites.paper.store import MS_PER_MB, calibrated
from penstock_lab.suites.paper.tables import draw, show
from support.paper_records import HEAVY, RECOVERED, batch_record, paper_records

PLAN = plan_of(quick=True)


def by_name(records: Sequence[Record]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures(PLAN, records)}


def test_a_baseline_that_falls_behind_counts_as_a_lower_bound() -> None:
    records = [
        batch_record(HEAVY, "default", 5_000.0),
        batch_record(HEAVY, "zstream", 6_000.0, verdict="stalled"),
        batch_record(HEAVY, "full", 500.0),
    ]
    named = by_name(records)
    headline = named["headline.batch_p99_ratio_max"]
    assert headline.value == 12.0
    assert "a lower bound, because default, zstream fell behind" in str(headline)
    assert named["CM1@2500.zstream.batch_p99_ms"].value == 6_000.0
    assert named["headline.runs_stalled"].value == 0


def test_ours_that_falls_behind_is_no_figure_and_is_counted() -> None:
    records = [
        batch_record(HEAVY, "default", 5_000.0),
        batch_record(HEAVY, "full", 500.0, verdict="stalled"),
    ]
    named = by_name(records)
    assert "headline.batch_p99_ratio_max" not in named
    assert "CM1@2500.full.batch_p99_ms" not in named
    assert named["headline.runs_stalled"].value == 1


def test_a_wrong_answer_is_no_bound() -> None:
    records = [
        batch_record(HEAVY, "default", 5_000.0, verdict="wrong"),
        batch_record(HEAVY, "full", 500.0),
    ]
    named = by_name(records)
    assert "headline.batch_p99_ratio_max" not in named
    assert named["headline.answers_wrong"].value == 1


def test_a_ratio_is_the_worst_of_the_others_over_ours_within_a_repeat() -> None:
    times = {"default": (1_000.0, 4_000.0, 900.0), "full": (100.0, 200.0, 100.0)}
    records = [
        batch_record(HEAVY, system, took_ms, repeat)
        for system, repeats in times.items()
        for repeat, took_ms in enumerate(repeats)
    ]
    headline = by_name(records)["headline.batch_p99_ratio_max"]
    assert (headline.value, headline.repeats) == (10.0, (10.0, 20.0, 9.0))


def test_a_query_whose_store_could_not_be_made_says_so_and_is_in_no_headline() -> None:
    join = Cell(LR2, 1_800)
    calibration = batch_record(HEAVY, "default", 900.0, kind="calibration")
    records: list[Record] = [
        msgspec.structs.replace(calibration, snapshot_bytes=[]),
        batch_record(HEAVY, "default", 9_000.0),
        batch_record(HEAVY, "full", 300.0),
        batch_record(join, "default", 900.0, kind="calibration"),
        batch_record(join, "default", 2_000.0),
        batch_record(join, "full", 1_000.0),
    ]
    named = by_name(records)
    words = "no run told the checkpoints of CM1, so it is on remote20"
    assert named["CM1@2500.batch_p99_ratio"].value == 30.0
    assert words in named["CM1@2500.batch_p99_ratio"].meaning
    assert "remote20" not in named["LR2.batch_p99_ratio"].meaning
    assert named["headline.batch_p99_ratio_max"].value == 2.0
    assert named["headline.throughput_ratio_max"].value == pytest.approx(2.0)
    out = io.StringIO()
    show(Console(file=out, width=200), PLAN, records, figures(PLAN, records))
    assert f"in no headline: {words}" in out.getvalue()
    alone = by_name(records[:3])
    assert not {"headline.batch_p99_ratio_max", "headline.throughput_ratio_max"} & set(alone)
    assert "CM1.store.ms_per_operation" not in alone


def test_throughput_is_the_bytes_of_a_batch_over_its_time() -> None:
    records = [batch_record(HEAVY, "default", 3_000.0), batch_record(HEAVY, "full", 300.0)]
    named = by_name(records)
    # 7,500 rows of 65 bytes in 3 s.
    assert named["CM1@2500.default.throughput_kb_per_s"].value == pytest.approx(162.5)
    assert named["headline.throughput_ratio_max"].value == pytest.approx(10.0)
    assert named["CM1@2500.default.late_share"].value == 0.0
    assert named["CM1@2500.full.cpu_cores"].value == 0.5


def test_rows_of_windows_long_over_have_no_latency() -> None:
    named = by_name([batch_record(HEAVY, "full", 300.0), batch_record(Cell(LR2, 9), "full", 9.0)])
    assert "CM1@2500.full.event_p99_ms" not in named
    assert named["LR2.full.event_p99_ms"].value == 9.0


def test_the_store_makes_a_checkpoint_take_as_long_as_in_the_paper() -> None:
    # Eight partitions: 500 ms and 50 kB each, on a store of 20 ms and 10 ms per MB.
    calibration = calibrated([4_000.0] * 10, [400_000] * 10, 8)
    assert calibration is not None
    assert (calibration.commit_ms, calibration.partition_bytes) == (500.0, 50_000.0)
    assert calibration.commit_ms * calibration.slowdown == CHECKPOINT_MS
    assert calibration.conf["spark.hadoop.fs.paper.ms.per.operation"] == "100"
    assert calibration.conf["spark.hadoop.fs.paper.ms.per.mb"] == "50.0"


def test_a_store_is_never_faster_than_the_measured_one() -> None:
    calibration = calibrated([80_000.0], [400_000], 8)
    assert calibration is not None
    assert calibration.ms_per_mb == MS_PER_MB
    assert calibration.slowdown == 1.0


@pytest.mark.parametrize(("commits", "sizes"), [([], [1]), ([1.0], []), ([0.0], [1])])
def test_without_a_checkpoint_there_is_no_store(commits: list[float], sizes: list[int]) -> None:
    assert calibrated(commits, sizes, 8) is None


def tried(held: int, failed: int = 0) -> tuple[Tried, ...]:
    return (Tried(held, True), *([Tried(failed, False)] if failed else []))


def test_the_rate_of_a_join_is_above_what_default_holds_and_below_what_full_does() -> None:
    assert least_of_ours(tried(2_000, 2_300)) == 3_000
    assert chosen_rate(tried(2_000, 2_300), tried(3_000)) == 2_400
    assert chosen_rate(tried(2_000, 2_300), tried(2_500, 3_000)) == 2_000
    # Nothing held: the lowest that was tried flatters it.
    assert chosen_rate((Tried(500, False), Tried(2_000, False)), tried(3_000)) == 600


@pytest.mark.parametrize(
    ("rungs", "rate"),
    [
        # Transactions are like markers, and markers as fast as at the smallest rate.
        ([Rung(1, 100.0, 100.0), Rung(2, 105.0, 110.0), Rung(4, 109.0, 119.0)], 4),
        # At 4 transactions are slower by more than a tenth.
        ([Rung(1, 100.0, 100.0), Rung(2, 105.0, 110.0), Rung(4, 109.0, 130.0)], 2),
        # At 4 markers are slower by more than a tenth.
        ([Rung(1, 100.0, 100.0), Rung(2, 105.0, 110.0), Rung(4, 111.0, 111.0)], 2),
        # No rate meets both: the smallest.
        ([Rung(1, 100.0, 200.0), Rung(2, 105.0, None)], 1),
        ([Rung(1, None, None)], 1),
    ],
)
def test_the_rate_of_a_graph_is_the_largest_that_stresses_neither_protocol(
    rungs: list[Rung], rate: int
) -> None:
    assert rate_by_rule(rungs) == rate


def test_batches_are_counted_after_the_warm_up_and_without_the_wait_for_a_cut() -> None:
    batches = [
        msgspec.structs.replace(batch, rows=batch.number, admission_ms=100.0)
        for batch in batch_record(HEAVY, "default", 500.0).batches
    ]
    # Batch 0 has no rows; 1 and 2 are the warm-up.
    counted = counted_batches(batches, 2, 3, is_cut=False)
    assert [(batch.number, batch.took_ms) for batch in counted] == [(3, 500), (4, 500), (5, 500)]
    assert [batch.took_ms for batch in counted_batches(batches, 2, 9, is_cut=True)] == [400.0] * 5


def test_recovery_of_warm_tasks_stands_beside_that_of_cold_ones() -> None:
    named = by_name([RECOVERED])
    assert named["headline.recovery_cold_ratio"].value == 5.0
    assert named["headline.recovery_warm_ratio"].value == 18.0
    assert named["recovery.warm_with_ms"].value == 50.0


def test_tables_and_picture_show_both_parts(tmp_path: Path) -> None:
    records, out = paper_records(), io.StringIO()
    made = figures(PLAN, records)
    show(Console(file=out, width=120), PLAN, records, made)
    shown = out.getvalue()
    for words in ("CM1 at 2,500/s", "fell behind: LR2", "Q8 every 10 ms", "LR2.rate_per_s"):
        assert words in shown
    assert "not in a quick run: the rate of LR2" in shown
    picture = tmp_path / "paper.png"
    draw(PLAN, records, made, picture)
    assert picture.stat().st_size > 1_000
    assert {for_file(record)["kind"] for record in records[:-1]} == {
        *("calibration", "compared", "sustain")
    }
    assert for_file(records[0])["measured_batches"] == 8
    assert for_file(RECOVERED)["measured"] == "recovery"


def test_a_plan_of_one_query_or_paper_has_nothing_else() -> None:
    plan = plan_of(quick=True, papers_asked=("misa",), queries=("CM1",), chosen=("full",))
    assert plan.graphs is None
    assert plan.batches is not None
    assert (plan.batches.queries, plan.batches.systems) == ((CM1,), ("full",))


def test_a_ratio_of_queries_that_all_fell_behind_is_no_bound() -> None:
    records = [batch_record(HEAVY, "default", 9_000.0), batch_record(HEAVY, "full", 4_000.0)]
    headline = by_name(records)["headline.batch_p99_ratio_max"]
    assert headline.value == 2.25
    assert "no bound either way, because default, full fell behind" in str(headline)
