"""The figures of the commit suite: ratios within a repeat, and no run that does not count."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.latency import Latencies
from penstock_lab.experiment.record import Run
from penstock_lab.experiment.search import Searched, Tried
from penstock_lab.experiment.verdict import Verdict
from penstock_lab.suites.commit.cells import Cell, Growth
from penstock_lab.suites.commit.figures import figures, highest_rates, sustained_ratio
from penstock_lab.suites.commit.plans import plan_of
from penstock_lab.suites.commit.runs import Record, for_file
from penstock_lab.suites.commit.tables import draw, show
from support.skip_reasons import NO_MATPLOTLIB

PLAN = plan_of(quick=True)
JOIN = Cell("lr_join_30_1", "remote20", 0.0, True)
LOCAL = Cell("lr_join_30_1", "local", 0.0, True)
AS_IT_COMES = Cell("lr_join_30_1", "local", 0.0, False)
CATEGORY = Cell("cm_category_60_10", "remote20", 0.0, True)
PAPER = Cell("cm_category_60_10", "remote20", 3.0, False)


def run_at(
    cell: Cell,
    system: str,
    repeat: int,
    event_ms: float,
    batch_ms: float = 100.0,
    kind: Literal["ok", "wrong", "stalled"] = "ok",
    rss_mb: float = 500.0,
) -> Record:
    verdict = Verdict(kind, ("why not",) * (kind != "ok"))
    latency = Latencies(100, event_ms, event_ms, event_ms, event_ms, event_ms)
    run = Run(cell.query, system, repeat, verdict, cell.rate, 100, latency, lag_ms=[1.0, 2.0])
    run = msgspec.structs.replace(run, curve=[event_ms] * 101)
    batches = [Timed(number, number * 1_000, 10, batch_ms, 1.0) for number in range(4)]
    return Record(cell, run, "compared", batches, [batch_ms] * 4, rss_mb=rss_mb)


def warmed(record: Record, batches: int, asked: int) -> Record:
    run = msgspec.structs.replace(record.run, warm_up_batches=batches, warm_up_batches_asked=asked)
    return msgspec.structs.replace(record, run=run)


def by_name(runs: list[Record]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures(PLAN, runs)}


def of_searches(*searched: Searched) -> dict[str, Figure]:
    return {
        figure.name: figure for figure in (*highest_rates(searched), *sustained_ratio(searched))
    }


def test_every_cell_and_system_has_its_five_figures() -> None:
    figures_made = by_name([run_at(JOIN, "tuned", 0, 800.0, 300.0, rss_mb=640.0)])
    name = "lr_join_30_1.remote20.0s.on.tuned"
    assert (
        figures_made[f"{name}.batch_p50_ms"].value
        == figures_made[f"{name}.batch_p99_ms"].value
        == 300.0
    )
    assert (
        figures_made[f"{name}.event_p50_ms"].value
        == figures_made[f"{name}.event_p99_ms"].value
        == 800.0
    )
    assert figures_made[f"{name}.rss_mb"].value == 640.0


def test_a_ratio_is_taken_within_a_repeat_and_the_least_query_is_the_headline() -> None:
    # repeat          1    2     3 (a slow one, for both)
    # join   tuned  400  800  4000
    #        full   100  200   500
    #        ratio    4    4     8   median 4
    # category        2    2     2
    runs = [
        *(run_at(JOIN, "tuned", n, ms) for n, ms in enumerate((400.0, 800.0, 4_000.0))),
        *(run_at(JOIN, "full", n, ms) for n, ms in enumerate((100.0, 200.0, 500.0))),
        *(run_at(CATEGORY, "tuned", n, 400.0) for n in range(3)),
        *(run_at(CATEGORY, "full", n, 200.0) for n in range(3)),
    ]
    least = by_name(runs)["headline.event_p99_ratio_remote20_min"]
    assert least.value == 2.0
    assert "cm_category" in least.meaning
    joined = by_name([run for run in runs if run.cell == JOIN])
    assert joined["headline.event_p99_ratio_remote20_min"].value == 4.0
    assert joined["headline.event_p99_ratio_remote20_min"].repeats == (4.0, 4.0, 8.0)
    assert "headline.event_p99_ratio_local_min" not in joined


def test_the_ablated_ratio_is_against_spark_s_order_with_our_local_files() -> None:
    local = Cell("cm_category_60_10", "local", 0.0, True)
    runs = [
        *(run_at(cell, "tuned", 0, 900.0) for cell in (LOCAL, local)),
        *(run_at(cell, "full", 0, 300.0) for cell in (LOCAL, local)),
        run_at(LOCAL, "tuned+files", 0, 600.0),
        run_at(local, "tuned+files", 0, 450.0),
    ]
    figures_made = by_name(runs)
    assert figures_made["headline.event_p99_ratio_local_min"].value == 3.0
    ablated = figures_made["headline.event_p99_ratio_local_ablated"]
    assert ablated.value == 1.5
    assert "cm_category" in ablated.meaning
    assert ablated.goal is None


def test_a_ratio_says_where_both_sides_have_the_state_of_what_is_visible() -> None:
    runs = [run_at(JOIN, name, 0, 10.0) for name in ("tuned", "full", "full-replicated")]
    runs += [run_at(JOIN, name, 0, 10.0) for name in ("tuned-files", "plug-in")]
    figures_made = by_name(runs)
    least = figures_made["headline.event_p99_ratio_remote20_min"].meaning
    assert least.endswith("tuned in the checkpoint location, full in the log, one copy")
    same = figures_made["headline.replicated_ratio_remote20"].meaning
    assert same.endswith("full-replicated in the log, three copies")
    alone = figures_made["headline.plug_in_ratio_remote20"].meaning
    assert "plug-in in the checkpoint location" in alone


def test_each_step_of_the_ablation_is_over_the_one_before_it() -> None:
    # cell     default  tuned  tuned+files  asyncckpt  full
    # batches      600    400          300        200   100
    # repeat 2 of asyncckpt does not count, and repeat 1 is as repeat 2 of the others
    times = {"tuned": 400.0, "tuned+files": 300.0, "asyncckpt": 200.0, "full": 100.0}
    runs = [run_at(LOCAL, name, n, 2 * ms, ms) for name, ms in times.items() for n in range(2)]
    runs = [run for run in runs if (run.system, run.repeat) != ("asyncckpt", 1)]
    runs.append(run_at(LOCAL, "asyncckpt", 1, 1.0, 1.0, kind="stalled"))
    runs += [run_at(AS_IT_COMES, "default", n, 1_800.0, 600.0) for n in range(2)]
    # Without a changelog these are no step after tuned.
    runs += [run_at(AS_IT_COMES, name, 0, 1.0, 1.0) for name in ("asyncckpt", "full")]
    figures_made = by_name(runs)
    step = "lr_join_30_1.local.0s.step"
    assert figures_made[f"{step}.tuned.batch_p50_ratio"].value == 1.5
    assert figures_made[f"{step}.tuned.event_p99_ratio"].value == 2.25
    assert figures_made[f"{step}.tuned+files.batch_p50_ratio"].value == pytest.approx(4 / 3)
    assert figures_made[f"{step}.asyncckpt.batch_p50_ratio"].repeats == (1.5,)
    assert figures_made[f"{step}.full.batch_p50_ratio"].value == 2.0
    changelog_step = figures_made[f"{step}.tuned.batch_p50_ratio"]
    assert "a changelog instead of snapshots" in changelog_step.meaning
    assert f"{step}.default.batch_p50_ratio" not in figures_made


def test_the_jar_alone_has_a_step_for_its_files_and_one_for_its_commit() -> None:
    times = {"tuned": 500.0, "tuned-files": 600.0, "plug-in-sync": 300.0, "plug-in": 200.0}
    figures_made = by_name([run_at(LOCAL, name, 0, 2 * ms, ms) for name, ms in times.items()])
    step = "lr_join_30_1.local.0s.step"
    files, commit = (
        figures_made[f"{step}.{name}.batch_p50_ratio"] for name in ("plug-in-sync", "plug-in")
    )
    assert (files.value, commit.value) == (2.0, 1.5)
    assert "tuned-files over plug-in-sync" in files.meaning
    assert "plug-in-sync over plug-in" in commit.meaning
    assert f"{step}.tuned-files.batch_p50_ratio" not in figures_made, "no step after tuned"
    assert figures_made["headline.plug_in_ratio_local"].value == 3.0
    assert figures_made["headline.plug_in_ratio_local_ablated"].value == 1.5


def test_behind_a_delay_the_step_after_tuned_is_the_one_that_was_run() -> None:
    figures_made = by_name([run_at(JOIN, name, 0, 10.0) for name in ("tuned", "asyncckpt", "full")])
    sentence = figures_made["lr_join_30_1.remote20.0s.step.asyncckpt.event_p99_ratio"].meaning
    assert "tuned over asyncckpt" in sentence


def test_a_run_that_does_not_count_enters_no_ratio() -> None:
    runs = [
        run_at(JOIN, "tuned", 0, 400.0),
        run_at(JOIN, "full", 0, 100.0),
        run_at(JOIN, "tuned", 1, 400.0),
        run_at(JOIN, "full", 1, 1.0, kind="stalled"),
    ]
    figures_made = by_name(runs)
    assert figures_made["headline.event_p99_ratio_remote20_min"].repeats == (4.0,)
    assert figures_made["headline.runs_stalled"].value == 1


def test_a_wrong_answer_is_counted_whatever_it_was_run_for() -> None:
    wrong = msgspec.structs.replace(run_at(JOIN, "full", 0, 1.0, kind="wrong"), kind="sustain")
    figures_made = by_name([run_at(JOIN, "tuned", 0, 1.0), wrong])
    assert figures_made["headline.answers_wrong"].value == 1
    assert "headline.event_p99_ratio_remote20_min" not in figures_made


def test_memory_is_compared_over_the_cells_that_both_ran() -> None:
    runs = [
        run_at(JOIN, "tuned", 0, 1.0, rss_mb=400.0),
        run_at(JOIN, "full", 0, 1.0, rss_mb=500.0),
        # Only one of the two ran this, and it takes much memory.
        run_at(PAPER, "full", 0, 1.0, rss_mb=9_000.0),
    ]
    assert by_name(runs)["headline.memory_full_over_sync"].value == pytest.approx(1.25)


def searched(system: str, *tried: tuple[int, bool]) -> Searched:
    return Searched(JOIN, system, tuple(Tried(rate, held, "held") for rate, held in tried))


def test_the_sustained_ratio_is_ours_over_theirs() -> None:
    figures_made = of_searches(
        searched("tuned", (10_000, True), (20_000, False)),
        searched("full", (10_000, True), (20_000, True), (40_000, False)),
    )
    assert figures_made["headline.sustainable_ratio"].value == 2.0
    assert figures_made["lr_join_30_1.remote20.0s.on.full.sustained_per_s"].value == 20_000


def test_one_that_held_no_rate_is_taken_at_the_lowest_it_failed_at() -> None:
    none = searched("tuned", (10_000, False), (5_000, False))
    figures_made = of_searches(none, searched("full", (10_000, True), (20_000, False)))
    assert figures_made["headline.sustainable_ratio"].value == 2.0
    figures_made = of_searches(searched("tuned", (10_000, True)), searched("full", (10_000, False)))
    assert figures_made["headline.sustainable_ratio"].value == 0.0


def test_a_search_that_ended_at_its_highest_rate_says_so() -> None:
    both = (searched("tuned", (10_000, True)), searched("full", (10_000, True)))
    assert "ended at the highest" in of_searches(*both)["headline.sustainable_ratio"].meaning


def test_spark_as_it_comes_is_seen_to_grow_beside_ours_and_is_not_the_headline() -> None:
    took = [100.0] * 75 + [300.0] * 25
    long = msgspec.structs.replace(run_at(JOIN, "default", 0, 1.0), kind="growth", took_ms=took)
    figures_made = by_name([long])
    assert figures_made["lr_join_30_1.remote20.0s.on.default.batch_ms_growth"].value == 3.0
    assert figures_made["lr_join_30_1.remote20.0s.on.default.batch_ms_spike"].value == 3.0
    assert "headline.batch_ms_growth" not in figures_made


@pytest.mark.parametrize(("batches", "is_there"), [(99, False), (100, True)])
def test_growth_needs_as_many_batches_as_were_promised(batches: int, is_there: bool) -> None:
    assert isinstance(PLAN.growth, Growth)
    took = [100.0] * (batches - 25) + [120.0] * 25
    run = msgspec.structs.replace(run_at(JOIN, "full", 0, 1.0), kind="growth", took_ms=took)
    figures_made = by_name([run])
    assert ("headline.batch_ms_growth" in figures_made) is is_there
    if is_there:
        assert figures_made["headline.batch_ms_growth"].value == pytest.approx(1.2)
    out = io.StringIO()
    show(Console(file=out, width=200), PLAN, [run], list(figures_made.values()))
    assert ("no figure: growth" in out.getvalue()) is not is_there


def test_the_goals_are_those_that_were_set() -> None:
    runs = [
        run_at(Cell(cell.query, store, cell.every_s, cell.has_changelog), name, 0, 10.0)
        for cell in (JOIN, PAPER)
        for store in ("local", "remote20", "remote80")
        for name in ("default", "tuned", "asyncckpt", "full")
    ]
    figures_made = by_name(runs)
    bounds = {
        name.removeprefix("headline."): figure.goal.bound
        for name, figure in figures_made.items()
        if figure.goal is not None
    }
    assert bounds["event_p99_ratio_local_min"] == 2
    assert bounds["event_p99_ratio_remote20_min"] == 3
    assert bounds["event_p99_ratio_remote80_min"] == 5
    assert bounds["memory_full_over_sync"] == 1
    assert bounds["answers_wrong"] == 0


def test_what_the_location_lacks_at_the_end_is_told() -> None:
    steps = {
        "marker": {"count": 9.0, "total_ms": 90.0, "max_ms": 20.0},
        "copy": {"count": 2.0, "total_ms": 900.0, "max_ms": 500.0},
    }
    run = msgspec.structs.replace(run_at(JOIN, "full", 0, 10.0), steps=steps)
    assert run.behind_batches == 7
    assert run_at(JOIN, "tuned", 0, 10.0).behind_batches is None
    figures_made = by_name([run])
    assert figures_made["lr_join_30_1.remote20.0s.on.full.behind_batches"].value == 7


def test_the_tables_fit_into_eighty_columns_and_say_what_is_wrong() -> None:
    steps = {"marker": {"count": 2.0, "total_ms": 30.0, "max_ms": 20.0}}
    runs = [
        warmed(run_at(CATEGORY, "tuned", 0, 10_000.0), 4, 10),
        run_at(LOCAL, "tuned+files", 0, 10_000.0),
        run_at(LOCAL, "full", 0, 10_000.0),
        run_at(JOIN, "full-replicated", 0, 10_000.0),
        run_at(JOIN, "tuned", 0, 12_400.0),
        run_at(JOIN, "tuned", 1, 34_100.0),
        msgspec.structs.replace(run_at(JOIN, "full", 0, 10_000.0), steps=steps),
        msgspec.structs.replace(run_at(JOIN, "full", 1, 10_000.0), steps=steps),
        run_at(PAPER, "default", 0, 1.0, kind="wrong"),
    ]
    out = io.StringIO()
    show(Console(file=out, width=80), PLAN, runs, figures(PLAN, runs))
    text = out.getvalue()
    assert "\nlr_join_30_1 " in text
    assert "\n remote20.0s.on " in text
    assert "(12400-34100)" in text
    assert "…" not in text
    assert "15 (20)" in text
    assert "does not count: cm_category_60_10" in text
    assert "not in a quick run" in text
    assert "8 batches" in text
    assert "all of" in text
    assert "warmed up for 4 batches instead of 10: cm_category_60_10" in text


def test_a_first_run_is_held_to_the_batches_of_first_runs() -> None:
    runs = [
        warmed(run_at(JOIN, "tuned", 0, 800.0), 15, 60),
        warmed(run_at(JOIN, "tuned", 1, 800.0), 10, 10),
        warmed(run_at(JOIN, "full", 0, 100.0), 60, 60),
        warmed(run_at(JOIN, "full", 1, 100.0, kind="stalled"), 2, 10),
    ]
    out = io.StringIO()
    show(Console(file=out, width=200), PLAN, runs, figures(PLAN, runs))
    said = [line for line in out.getvalue().splitlines() if line.startswith("warmed up")]
    assert said == [f"warmed up for 15 batches instead of 60: {JOIN.words}: tuned, 1 run"]


def test_a_run_in_the_file_has_its_batches_as_columns() -> None:
    figures_made = for_file(run_at(JOIN, "full", 0, 100.0))
    assert figures_made["cell"] == "lr_join_30_1.remote20.0s.on"
    assert figures_made["batches"]["took_ms"] == [100.0] * 4
    assert "lag_ms" not in figures_made


def test_a_picture_is_drawn_of_what_counts(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason=NO_MATPLOTLIB)
    runs = [run_at(JOIN, "tuned", 0, 400.0), run_at(PAPER, "default", 0, 1.0, kind="wrong")]
    draw(PLAN, runs, [], tmp_path / "found.png")
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")
