"""Figures of the prefetch suite from records that are made up, and where the controller moved."""

from __future__ import annotations

import msgspec
import pytest

from penstock_lab.experiment.figures import Goal
from penstock_lab.experiment.state_reads import CacheReads, StateReads, between, less, state_reads
from penstock_lab.suites.prefetch import adaptation
from penstock_lab.suites.prefetch.cells import Cell
from penstock_lab.suites.prefetch.figures import best_ratios, figures, p999
from penstock_lab.suites.prefetch.plans import plan_of
from penstock_lab.suites.prefetch.records import Record
from penstock_lab.suites.prefetch.tables import missed, short
from support.bench_records import at_rate, run_of
from support.prefetch_records import CELL, adaptation_record, overhead_records, record


def test_the_best_other_is_held_against_ours_within_each_repeat() -> None:
    records = [
        *(record("asyncio", repeat, 100.0 + repeat) for repeat in range(3)),
        *(record("lru", repeat, 300.0) for repeat in range(3)),
        *(record("prefetch", repeat, 50.0) for repeat in range(3)),
    ]
    (ratio,) = best_ratios(records, p999)
    assert ratio.repeats == (2.0, 2.02, 2.04)
    assert ratio.value == 2.02


def test_variants_of_ours_are_no_others() -> None:
    records = [record("prefetch-lru", 0, 20.0), record("asyncio", 0, 100.0)]
    records.append(record("prefetch", 0, 50.0))
    (ratio,) = best_ratios(records, p999)
    assert ratio.value == 2.0


def test_a_run_of_ours_that_fell_behind_stays_in_and_is_counted() -> None:
    ours = record("prefetch", 0, 50.0)
    slow = msgspec.structs.replace(
        ours.filled_run, run=at_rate(run_of("q18", "prefetch", 0, 50.0), 1_000, 99.0)
    )
    ours = msgspec.structs.replace(ours, filled_run=slow)
    records = [record("asyncio", 0, 100.0), ours]
    (ratio,) = best_ratios(records, p999)
    assert ratio.value == pytest.approx(2.0)
    by_name = {each.name: each for each in figures(plan_of(quick=True), records)}
    assert by_name["headline.runs_behind"].value == 1


def test_the_headline_is_the_least_of_the_workloads_at_the_higher_rate() -> None:
    other = msgspec.structs.replace(
        CELL, workload=msgspec.structs.replace(CELL.workload, query="q20")
    )
    low = msgspec.structs.replace(CELL, level="low")
    records: list[Record] = []
    for cell, theirs in ((CELL, 200.0), (other, 150.0), (low, 60.0)):
        records += [record("asyncio", 0, theirs, cell), record("prefetch", 0, 100.0, cell)]
    by_name = {each.name: each for each in figures(plan_of(quick=True), records)}
    assert by_name["headline.p999_ratio_min"].value == 1.5
    assert "Q20" in str(by_name["headline.p999_ratio_min"])
    assert by_name["headline.p999_ratio_min"].goal is not None


def test_a_missed_ratio_is_explained_by_reads_and_processor_time() -> None:
    ours = record("prefetch", 0, 100.0, cpu_us_per_row=30.0)
    records = [record("asyncio", 0, 140.0), ours]
    made = figures(plan_of(quick=True), records)
    by_name = {each.name: each.value for each in made}
    assert by_name["Q18.read1ms.high.asyncio.read_us_per_row"] == 5.0, "6 ms of 1,200 rows"
    assert by_name["Q18.read1ms.high.asyncio.cpu_us_per_row"] == 20.0
    (sentence,) = missed(records, made)
    assert "ratio 1.40" in sentence
    assert "5.0 us of a row, 0.25 of its processor time of 20.0 us" in sentence
    assert "prefetch's cost 5.0 us, and a row 30.0 us" in sentence
    assert "needs 0.75" in sentence
    met = [record("asyncio", 0, 240.0), record("prefetch", 0, 100.0)]
    assert missed(met, figures(plan_of(quick=True), met)) == []


@pytest.mark.parametrize(("with_rows", "is_short"), [(100, False), (99, True)])
def test_a_run_is_short_with_fewer_than_a_hundred_batches_that_have_rows(
    with_rows: int, is_short: bool
) -> None:
    whole, plan = record("prefetch", 0, 50.0), plan_of(quick=True)
    spans = [
        msgspec.structs.replace(span, rows=span.rows if number < with_rows else 0)
        for number, span in enumerate(whole.filled_run.measured)
    ]
    assert len(spans) >= plan.batches
    run = msgspec.structs.replace(whole.filled_run, measured=spans)
    some = msgspec.structs.replace(whole, filled_run=run)
    by_name = {each.name: each.value for each in figures(plan, [some])}
    assert by_name["headline.runs_short"] == is_short
    assert [f"{with_rows} batches" in line for line in short(plan, [some])] == [True] * is_short


def test_a_state_must_be_ten_times_the_budget_where_the_headline_is_about_it() -> None:
    larger = msgspec.structs.replace(CELL.workload, cache_share=2.0)
    backlogs = [
        record("lru", 0, 50.0, Cell(workload), "backlog") for workload in (CELL.workload, larger)
    ]
    by_name = {each.name: each for each in figures(plan_of(quick=True), backlogs)}
    main = by_name["Q18.read1ms.state_over_budget"]
    assert (main.value, main.goal) == (10.0, Goal("at least", 10.0))
    assert by_name["Q18.read1ms.cache200.state_over_budget"].goal is None


def test_overhead_is_taken_turn_by_turn_and_the_first_warms_up() -> None:
    by_name = {
        each.name: each
        for each in figures(plan_of(quick=True), overhead_records([9.9, 1.02, 1.04, 1.0]))
    }
    assert by_name["headline.overhead_in_memory"].value == pytest.approx(0.02)


def test_the_move_is_counted_from_the_change_on() -> None:
    samples = [
        CacheReads(batch=n, active="A" if n < 33 else "CD", moved_after=5 if n < 33 else 32)
        for n in range(60)
    ]
    assert adaptation.batches_to_move(samples, 30, 50) == 3, "the last of them is batch 32"
    assert adaptation.batches_to_move(samples, 40, None) is None
    assert adaptation.batches_to_move(samples, 20, 32) is None


def test_a_move_back_to_an_earlier_place_is_none() -> None:
    samples = [
        CacheReads(batch=n, active="CD" if n < 33 else "BD", moved_after=5 if n < 33 else 32)
        for n in range(60)
    ]
    assert adaptation.batches_to_move(samples, 30, None) is None


def test_figures_and_sentences_of_the_adaptation() -> None:
    moved = adaptation_record({30: "A", 34: "CD", 65: "D"}, {"accuracy": 31, "timing": 60})
    by_name = {each.name: each.value for each in adaptation.adaptation_figures([moved])}
    assert by_name == {"adaptation.accuracy_batches": 3.0, "adaptation.timing_batches": 5.0}
    still = adaptation_record({30: "A"}, {"accuracy": 31})
    (failed,) = adaptation.adaptation_figures([still])
    assert failed.goal is not None
    assert not failed.goal.is_met(failed.value)
    assert any("nothing moved" in line for line in adaptation.sentences([still]))


def test_the_earliest_active_candidate_is_drawn() -> None:
    assert [adaptation.place_of(active) for active in ("", "A", "BD", "D")] == [0, 1, 2, 4]


def test_rocksdb_counters_are_summed_over_operators_and_taken_between_batches() -> None:
    metrics = {"rocksdbGetCount": 5, "rocksdbReadBlockCacheMissCount": 2, "rocksdbSstFileSize": 9}
    progress = {"batchId": 3, "stateOperators": [{"customMetrics": metrics}] * 2}
    assert state_reads(progress) == StateReads(3, 10, 0, 4, 18)
    totals = [StateReads(n, 10 * n, 0, 4 * n, n) for n in (1, 2, 2, 3, 4)]
    assert between(totals, 2, 3) == StateReads(3, 20, 0, 8, 3)
    assert between(totals, 1, 4) == StateReads(4, 40, 0, 16, 4), "nothing came before"


def test_counts_of_a_stretch_are_what_was_added_in_it() -> None:
    earlier, later = CacheReads(hits=5, active="A"), CacheReads(hits=9, misses=1, active="CD")
    assert less(later, earlier) == CacheReads(hits=4, misses=1, active="CD")
    assert less(later, earlier).hit_ratio == 0.8
    assert CacheReads().hit_ratio is None
