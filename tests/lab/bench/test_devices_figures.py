"""What the devices suite makes of its runs, without running them."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock.errors import BadCall
from penstock_lab.experiment.device_plans import PlannedBatches
from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.result import result, write
from penstock_lab.measure.size_times import SizeTimes
from penstock_lab.suites.devices import SUITE, tables
from penstock_lab.suites.devices.cells import Cell
from penstock_lab.suites.devices.modes import (
    BASELINE,
    LMSTREAM,
    OURS,
    OURS_COLUMNAR,
    STATIC,
)
from penstock_lab.suites.devices.records import (
    OperationRecord,
    Record,
    SparkRecord,
    for_file,
    records_in,
)
from support.device_records import HIGH, LOW, asked, every_record, inflection, spark_run

OTHER = Cell("CM1S", "constant", 1_000)
UNPLANNED = Cell("LR1S", "random", 200_000)


def by_name(*records: Record) -> dict[str, Figure]:
    return {figure.name: figure for figure in SUITE.figures(asked(), records)}


def words_of(figure: Figure) -> str:
    """The sentence of a figure."""
    return str(msgspec.to_builtins(figure)["meaning"])


def test_latency_is_that_of_the_best_workload_and_no_workload_may_be_slower() -> None:
    #             LR1T           CM1S
    # trigger     1000           500
    # ours        250 (75 %)     550 (10 % more)
    figures = by_name(
        spark_run(LOW, BASELINE, 1_000), spark_run(LOW, OURS, 250),
        spark_run(OTHER, BASELINE, 500), spark_run(OTHER, OURS, 550),
        spark_run(HIGH, BASELINE, 9_000), spark_run(HIGH, OURS, 100),
    )  # fmt: skip
    assert figures["headline.latency_reduction"].value == pytest.approx(0.75)
    assert "LR1T.constant@1000" in words_of(figures["headline.latency_reduction"])
    assert figures["headline.latency_reduction_min"].value == pytest.approx(-0.1)
    assert "CM1S" in words_of(figures["headline.latency_reduction_min"])


def test_a_baseline_that_falls_behind_is_a_lower_bound_and_ours_is_not() -> None:
    figures = by_name(spark_run(LOW, BASELINE, 1_000, verdict="stalled"), spark_run(LOW, OURS, 500))
    assert figures["headline.latency_reduction"].value == pytest.approx(0.5)
    assert figures["headline.runs_stalled"].value == 0
    figures = by_name(spark_run(LOW, BASELINE, 1_000), spark_run(LOW, OURS, 500, verdict="stalled"))
    assert "headline.latency_reduction" not in figures
    assert figures["headline.runs_stalled"].value == 1


def test_devices_are_held_against_each_other_by_the_time_of_a_batch() -> None:
    # static     100 to 60: 40 % lower in random traffic; constant traffic does not count
    # lmstream   0.9 and 1.3 of ours in two cells of one workload: the median of a workload
    # Ours held to workers, where devices alone differ, stands beside it and has no goal.
    figures = by_name(
        spark_run(HIGH, STATIC, batch_ms=100), spark_run(HIGH, LMSTREAM, batch_ms=54),
        spark_run(HIGH, OURS, batch_ms=60), spark_run(HIGH, OURS_COLUMNAR, batch_ms=90),
        spark_run(LOW, STATIC, batch_ms=500), spark_run(LOW, LMSTREAM, batch_ms=130),
        spark_run(LOW, OURS, batch_ms=100), spark_run(LOW, OURS_COLUMNAR, batch_ms=130),
    )  # fmt: skip
    assert figures["headline.vs_static"].value == pytest.approx(0.4)
    assert figures["headline.vs_lmstream_min"].value == pytest.approx(0.9)
    assert figures["headline.vs_lmstream_min"].repeats == pytest.approx((0.9, 1.3))
    assert figures["headline.vs_static_columnar"].value == pytest.approx(0.1)
    assert figures["headline.vs_lmstream_min_columnar"].repeats == pytest.approx((0.6, 1.0))
    assert figures["headline.vs_static"].goal is not None
    assert figures["headline.vs_static_columnar"].goal is None


def test_ours_counts_against_the_planners_where_all_its_batches_stay_in_spark() -> None:
    ours = msgspec.structs.replace(
        spark_run(HIGH, OURS, batch_ms=60), planned=PlannedBatches(20, 0, {"panes": 1.0}, 250_000.0)
    )
    figures = by_name(spark_run(HIGH, STATIC, batch_ms=100), ours)
    assert figures["headline.vs_static"].value == pytest.approx(0.4)


@pytest.mark.parametrize("planned", [None, PlannedBatches(20, 0, {"panes": 1.0}, 250_000.0)])
def test_a_cell_without_a_batch_in_workers_compares_no_devices_and_is_named(
    planned: PlannedBatches | None,
) -> None:
    in_workers = [
        spark_run(HIGH, STATIC, batch_ms=100), spark_run(HIGH, LMSTREAM, batch_ms=72),
        spark_run(HIGH, OURS_COLUMNAR, batch_ms=60), spark_run(HIGH, OURS, batch_ms=60),
    ]  # fmt: skip
    elsewhere = [
        msgspec.structs.replace(spark_run(UNPLANNED, mode, batch_ms=ms), planned=planned)
        for mode, ms in ((STATIC, 900), (LMSTREAM, 10), (OURS_COLUMNAR, 100))
    ]
    figures = by_name(*in_workers, *elsewhere)
    assert figures["headline.vs_static"].value == pytest.approx(0.4)
    assert figures["headline.vs_lmstream_min"].value == pytest.approx(1.2)
    (sentence,) = tables.without_workers([*in_workers, *elsewhere])
    assert sentence.startswith(
        "LR1S.random@200000: no batch of static, lmstream, ours-columnar went to workers"
    )
    assert "headline.vs_static" not in by_name(*elsewhere)


def test_the_rate_is_the_highest_that_held_in_random_traffic() -> None:
    def sustain(mode: str, rate: int, verdict: str = "ok") -> SparkRecord:
        cell = Cell("LR1T", "random", rate)
        return spark_run(cell, mode, kind="sustain", verdict=verdict)

    figures = by_name(
        spark_run(HIGH, BASELINE), sustain(BASELINE, 400_000, "stalled"),
        spark_run(HIGH, OURS), sustain(OURS, 400_000), sustain(OURS, 800_000, "failed"),
        # At a rate that the paper has, in other traffic: no part of the search.
        spark_run(LOW, BASELINE, verdict="stalled"),
    )  # fmt: skip
    assert figures["LR1T.ours.sustained_per_s"].value == 400_000
    assert "800,000 failed" in words_of(figures["LR1T.ours.sustained_per_s"])
    assert figures["headline.rate_ratio_best"].value == 2.0
    none = by_name(
        spark_run(HIGH, BASELINE, verdict="stalled"),
        sustain(BASELINE, 50_000, "stalled"),
        sustain(OURS, 200_000, "stalled"),
    )
    assert none["headline.rate_ratio_min"].value == 0.0


def test_planning_is_held_against_batch_time_in_its_worst_run() -> None:
    figures = by_name(
        spark_run(LOW, OURS, overhead=0.004),
        spark_run(HIGH, LMSTREAM, overhead=0.02),
        spark_run(HIGH, STATIC, overhead=0.5),
    )
    assert figures["headline.overhead"].value == 0.02
    words = words_of(figures["headline.overhead"])
    assert "LR1T.random@200000, lmstream" in words
    assert "carried out by the driver's rule" in words


def test_the_worst_inflection_point_counts_and_one_that_was_not_found_counts_as_far_off() -> None:
    figures = by_name(inflection("sort", 60, 66, 50), inflection("filter", 400, 800, 410))
    assert figures["headline.inflection_error"].value == pytest.approx(2.0)
    assert "filter, 10 times" in words_of(figures["headline.inflection_error"])
    assert figures["inflection.sort.ours_from_low_kb"].value == pytest.approx(50)
    lost = by_name(inflection("sort", 60, None, 60))
    assert lost["headline.inflection_error"].value == 100.0


def test_operations_are_medians_of_repeats_with_transfers_apart() -> None:
    def times(cpu: float, gpu: float) -> OperationRecord:
        return OperationRecord("join", (SizeTimes(256 << 10, 4_096, cpu, gpu, 0.25, 0.5),))

    figures = by_name(times(3.0, 1.0), times(5.0, 2.0), times(4.0, 1.5))
    assert figures["operations.join.cpu.256KB_ms"].value == 4.0
    assert figures["operations.join.gpu.256KB_ms"].value == 1.5
    assert figures["operations.join.gpu.256KB_transfer_ms"].value == 0.75


def test_results_of_several_commands_are_merged_and_share_no_repeat(tmp_path: Path) -> None:
    files = []
    results: tuple[list[Record], ...] = (every_record(), [spark_run(LOW, OURS, 50, repeat=1)])
    for number, records in enumerate(results):
        files.append(tmp_path / f"{number}.json")
        runs = [for_file(record) for record in records]
        write(result("devices", {}, runs, SUITE.figures(asked(), records)), files[-1])
    merged = asked(merged=files)
    assert merged.plan.parts == ()
    assert [record.repeat for record in merged.earlier] == [*[0] * (len(merged.earlier) - 1), 2]
    first = [msgspec.to_builtins(record) for record in merged.earlier[:-1]]
    assert first == [msgspec.to_builtins(_without_lags(record)) for record in every_record()]
    steps = SUITE.runs(merged, tmp_path, lambda _: None)
    assert [step.measure() for step in steps] == list(merged.earlier)


def test_a_workload_whose_modes_ran_in_one_order_only_is_named(tmp_path: Path) -> None:
    def file(name: str, **runs: bool) -> Path:
        made = [
            msgspec.structs.replace(
                spark_run(Cell(workload, "constant", 1_000), OURS), is_reversed=each
            )
            for workload, each in runs.items()
        ]
        write(result("devices", {}, [for_file(record) for record in made], []), tmp_path / name)
        return tmp_path / name

    first = file("first", LR1T=False, CM1S=False)
    (note,) = asked(merged=[first]).notes
    assert note.startswith("LR1T, CM1S: one order of modes only, ours after the others")
    both = asked(merged=[first, file("second", LR1T=True, CM2S=True)])
    assert [note.split(":")[0] for note in both.notes] == ["CM1S", "CM2S"]
    assert SUITE.settings(both)["notes"] == both.notes
    # What is measured now is a second repeat, in which they run the other way round.
    again = asked(merged=[first], parts=("spark",), workloads=("LR1T",))
    assert again.first_repeat == 1
    assert [note.split(":")[0] for note in again.notes] == ["CM1S"]
    assert asked(quick=False, workloads=("LR1T",)).notes == ()


def _without_lags(record: Record) -> Record:
    if not isinstance(record, SparkRecord):
        return record
    return msgspec.structs.replace(record, run=msgspec.structs.replace(record.run, lag_ms=[]))


def test_a_file_of_another_suite_is_refused_in_a_sentence(tmp_path: Path) -> None:
    other = tmp_path / "floor.json"
    write(result("floor", {}, [], []), other)
    with pytest.raises(BadCall, match="is a result of 'floor'; give one of devices"):
        records_in([other])
    other.write_text("{")
    with pytest.raises(BadCall, match="holds no result that can be merged"):
        records_in([other])


def test_tables_say_what_did_not_run_on_the_gpu_and_what_time_was_too_short_for() -> None:
    shown = io.StringIO()
    whole, few = (asked(workloads=("LR1T",), minutes_max=most) for most in (None, 9.0))
    records = every_record()
    tables.show(Console(file=shown, width=200), whole, records, SUITE.figures(whole, records))
    text = shown.getvalue()
    for mode in ("throughput-oriented", "throughput-panes"):
        words = "tasks planned for the GPU ran on the CPU: busy 24, full 2"
        assert f"LR1T, {mode}: {words}" in text
        assert f"LR1T, {mode}: not all of it ran on the GPU: gpu 25 %, panes 75 %" in text
    assert "LR1T: one order of modes only, ours after the others" in text
    assert "9 minutes were enough for" not in text
    tables.show(Console(file=shown, width=200), few, records[:3], [])
    assert "9 minutes were enough for 3 of up to 13 runs" in shown.getvalue()
