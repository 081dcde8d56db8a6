"""The figures of the deadlines suite: query by query, against the better baseline."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.latency import Latencies, Second
from penstock_lab.experiment.record import Kind, Run
from penstock_lab.experiment.together import QueryRun
from penstock_lab.experiment.verdict import Verdict
from penstock_lab.experiment.visible_rows import Recovery, Span
from penstock_lab.suites.deadlines.cells import Cell
from penstock_lab.suites.deadlines.figures import figures
from penstock_lab.suites.deadlines.plans import plan_of
from penstock_lab.suites.deadlines.record import Record, for_file
from penstock_lab.suites.deadlines.tables import draw, show
from support.bench_records import deadlines_records

PLAN = plan_of(quick=True)
JOIN, SPEED, COUNT = PLAN.queries


def record(
    mode: str,
    p95s: Mapping[str, float],
    *,
    repeat: int = 0,
    deadline_s: float = 5.0,
    kind: Kind = "compared",
    throughput: float = 100.0,
    misses: float = 0.0,
    is_ok: bool = True,
) -> Record:
    """A run in which the mean of a query is half its p95."""
    verdict = Verdict("ok") if is_ok else Verdict("stalled", ("why not",))
    queries = {}
    for query, p95 in p95s.items():
        latency = Latencies(100, p95 / 2, p95, p95, p95, p95)
        run = Run(query, mode, repeat, verdict, 1_800, 100, latency, lag_ms=[1.0])
        ratios = {"1": misses, "5": misses / 2}
        off = {"ours": 0.1, "zstream": 0.4, "lmstream": 0.3}
        queries[query] = QueryRun(
            run, p95 / 2, ratios, throughput=throughput, estimates_off=off, cpu_us_per_row=9.0
        )
    run = Run("all", mode, repeat, verdict, 1_800, lag_ms=[1.0])
    return Record(Cell("all", deadline_s, "high"), run, kind, queries)


def by_name(records: Sequence[Record]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures(PLAN, records)}


def test_each_query_is_held_against_the_better_of_the_baselines() -> None:
    #              join   speed   count
    # sb-fifo      8,000  6,000   6,000
    # sb-fair      9,000  5,000   6,000
    # db-edf       4,000  4,000   6,600
    # ratio          0.5    0.8     1.1
    made = by_name(
        [
            record("sb-fifo", {JOIN: 8_000, SPEED: 6_000, COUNT: 6_000}),
            record("sb-fair", {JOIN: 9_000, SPEED: 5_000, COUNT: 6_000}),
            record("db-edf", {JOIN: 4_000, SPEED: 4_000, COUNT: 6_600}),
        ]
    )
    assert made["headline.p95_reduction"].value == pytest.approx(50.0)
    assert made["headline.mean_reduction"].value == pytest.approx(50.0)
    assert made["headline.worst_query_ratio"].value == pytest.approx(1.1)
    assert COUNT in msgspec.to_builtins(made["headline.worst_query_ratio"])["meaning"]


def test_the_headline_is_of_the_longest_deadline_and_high_traffic() -> None:
    at_five = [record("sb-fifo", {JOIN: 8_000}), record("db-edf", {JOIN: 4_000})]
    at_one = [
        record("sb-fifo", {JOIN: 1_000}, deadline_s=1.0),
        record("db-edf", {JOIN: 100}, deadline_s=1.0),
    ]
    made = by_name([*at_five, *at_one])
    assert made["headline.p95_reduction"].value == pytest.approx(50.0)
    assert made[f"{JOIN}.1s.high.db-edf.p95_ms"].value == 100


def test_a_ratio_is_taken_within_a_repeat_and_a_run_that_does_not_count_enters_none() -> None:
    # repeat          1       2       3 (a slow one, for both)
    # sb-fifo     8,000   8,000  80,000
    # db-edf      4,000   6,000  20,000   ratios 0.5, 0.75, 0.25
    runs = [record("sb-fifo", {JOIN: ms}, repeat=n) for n, ms in enumerate((8e3, 8e3, 8e4))]
    runs += [record("db-edf", {JOIN: ms}, repeat=n) for n, ms in enumerate((4e3, 6e3, 2e4))]
    runs.append(record("db-edf", {JOIN: 1.0}, repeat=3, is_ok=False))
    reduction = by_name(runs)["headline.p95_reduction"]
    assert reduction.value == pytest.approx(50.0)
    assert reduction.repeats == pytest.approx((50.0, 25.0, 75.0))


def test_throughput_is_held_against_the_higher_of_the_baselines() -> None:
    made = by_name(
        [
            record("sb-fifo", {JOIN: 8_000}, throughput=100.0),
            record("sb-fair", {JOIN: 9_000}, throughput=120.0),
            record("db-edf", {JOIN: 4_000}, throughput=90.0),
        ]
    )
    assert made["headline.throughput_ratio"].value == pytest.approx(0.75)


def test_misses_with_spare_are_of_the_worst_query_and_deadline() -> None:
    made = by_name(
        [
            record("db-edf", {JOIN: 4_000}, kind="spare", misses=0.004),
            record("db-edf", {JOIN: 400}, kind="spare", misses=0.006, deadline_s=1.0),
        ]
    )
    figure = made["headline.miss_ratio_70"]
    # At 5 s half of the run's misses, at 1 s all of them.
    assert figure.value == 0.006
    assert figure.goal is not None
    assert figure.goal.is_met(figure.value)


def test_a_mode_that_knows_no_deadline_is_held_against_every_one() -> None:
    made = by_name([record("asap", {JOIN: 900}, misses=0.2)])
    assert made[f"{JOIN}.1s.high.asap.miss_ratio"].value == 0.2
    assert made[f"{JOIN}.5s.high.asap.miss_ratio"].value == 0.1
    assert made[f"{JOIN}.1s.high.asap.p95_ms"].value == 900


def test_the_papers_estimator_is_the_better_of_the_two() -> None:
    made = by_name([record("db-edf", {JOIN: 900, SPEED: 900})])
    assert made["headline.estimator_error_ours"].value == pytest.approx(10.0)
    assert made["headline.estimator_error_paper"].value == pytest.approx(30.0)


def test_a_burst_takes_as_long_as_its_slowest_query() -> None:
    calm = record("db-edf", {JOIN: 900, SPEED: 900}, kind="burst")
    back = {JOIN: Recovery(5e3, 4.0, True, 9e3), SPEED: Recovery(5e3, 7.0, False, 8e3)}
    made = by_name([msgspec.structs.replace(calm, recoveries=back)])
    assert made["burst.db-edf.back_s"].value == 7.0
    assert made["burst.db-edf.worst_ms"].value == 9e3
    assert "not back" in msgspec.to_builtins(made["burst.db-edf.back_s"])["meaning"]


def test_a_backlog_is_timed_from_the_start_of_the_query() -> None:
    waiting = record("db-edf", {SPEED: 900}, kind="backlog")
    spans = [Span(0, 1_000, 1_500, 0), Span(1, 2_000, 4_000, 500), Span(2, 4_000, 9_000, 90_000)]
    run = msgspec.structs.replace(waiting.queries[SPEED], spans=spans)
    back = {SPEED: Recovery(5e3, 12.0, True, 6e3)}
    made = by_name(
        [
            msgspec.structs.replace(
                waiting, queries={SPEED: run}, recoveries=back, started_ms=1_000.0
            )
        ]
    )
    assert made["backlog.db-edf.first_visible_s"].value == 3.0
    assert made["backlog.db-edf.first_batch_rows"].value == 500
    assert made["backlog.db-edf.longest_batch_s"].value == 5.0
    assert made["backlog.db-edf.back_s"].value == 12.0


def test_moments_that_passed_unasked_are_a_share_of_the_worst_query_s_batches() -> None:
    run = record("db-edf", {JOIN: 900, SPEED: 900, COUNT: 900})
    accounts = {
        JOIN: {"batches": 20.0, "moments_unasked": 1.0},
        SPEED: {"batches": 20.0, "moments_unasked": 5.0},
        COUNT: {"batches": 0.0, "moments_unasked": 0.0},
    }
    queries = {
        name: msgspec.structs.replace(query_run, admission=accounts[name])
        for name, query_run in run.queries.items()
    }
    share = by_name([msgspec.structs.replace(run, queries=queries)])["admission.unasked_share"]
    assert (share.value, share.repeats) == (0.25, (0.05, 0.25))


def test_everything_is_shown_drawn_and_written(tmp_path: Path) -> None:
    records = [drawn(record) for record in deadlines_records()]
    shown = io.StringIO()
    console = Console(file=shown, width=120)
    made = figures(PLAN, records)
    show(console, PLAN, records, made)
    for words in ("db-rdas", "headline.p95_reduction", "burst.back_s", "sustained_per_s"):
        assert words in shown.getvalue()
    assert "admission.unasked_share: 0.250, moments that passed" in shown.getvalue()
    draw(PLAN, records, made, tmp_path / "deadlines.png")
    assert (tmp_path / "deadlines.png").stat().st_size > 1_000
    written = msgspec.json.encode([for_file(record) for record in records])
    assert b'"spans":{"batch":[0,1,2,3]' in written


def drawn(made: Record) -> Record:
    """The same with curves and a series to draw."""
    queries = {}
    for number, (name, query_run) in enumerate(made.queries.items()):
        level = 400.0 + 300.0 * len(made.system) + 500.0 * number
        run = msgspec.structs.replace(
            query_run.run,
            curve=[level * (0.2 + n / 100) for n in range(101)],
            series=[Second(n, 100, level, level * (1 + n % 3 / 4)) for n in range(14)],
        )
        queries[name] = msgspec.structs.replace(query_run, run=run)
    return msgspec.structs.replace(made, queries=queries)
