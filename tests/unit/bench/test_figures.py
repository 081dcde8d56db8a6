"""The figures of a suite: medians, ratios within a repeat, and no run that does not count."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from penstock.bench.figures import figures
from penstock.bench.latency import Latencies
from penstock.bench.plan import plan_of
from penstock.bench.record import Run
from penstock.bench.suites import SUITES
from penstock.bench.tables import show
from penstock.bench.verdicts import Verdict


def run_of(query: str, system: str, repeat: int, p99: float, kind: str = "ok") -> Run:
    verdict = msgspec.convert({"kind": kind, "reasons": ["why not"] * (kind != "ok")}, Verdict)
    latency = Latencies(100, p99 / 2, p99 * 0.9, p99, p99, p99)
    return Run(query, system, repeat, verdict, 2_000, 100, latency, lag_ms=[1.0, 2.0])


def three(query: str, system: str, *p99: float) -> list[Run]:
    return [run_of(query, system, repeat, value) for repeat, value in enumerate(p99)]


RUNS = [
    *three("q1", "default", 300, 310, 900),
    *three("q1", "tuned", 200, 240, 800),
    *three("q1", "penstock", 100, 200, 400),
    *three("q18", "default", 300, 300, 300),
    *three("q18", "tuned", 90, 90, 90),
    *three("q18", "penstock", 100, 100, 100),
]


def test_every_figure_a_reader_was_promised_is_there() -> None:
    found = {one.name: one.value for one in figures(RUNS)}
    for query in ("Q1", "Q18"):
        for system in ("default", "tuned", "penstock"):
            assert f"{query}.{system}.p50_ms" in found
            assert f"{query}.{system}.p99_ms" in found
    assert found["Q1.tuned.p99_ms"] == 240
    assert found["Q1.penstock.p50_ms"] == 100
    assert found["generator_lag_ms_p99"] == 2.0
    assert found["headline.answers_wrong"] == 0


def test_ratios_are_taken_within_a_repeat() -> None:
    # repeat         1    2    3 (a slow one, for all)
    # tuned        200  240  800
    # penstock     100  200  400     ahead: 2.0  1.2  2.0
    found = {one.name: one for one in figures(RUNS)}
    assert found["Q1.ratio_p99_vs_tuned"].repeats == (2.0, 1.2, 2.0)
    assert found["Q1.ratio_p99_vs_tuned"].value == 2.0
    assert found["Q18.ratio_p99_vs_tuned"].value == pytest.approx(0.9)
    assert found["headline.ratio_p99_vs_tuned_min"].value == pytest.approx(0.9)
    assert found["headline.ratio_p99_vs_default_min"].value == pytest.approx(2.25)


@pytest.mark.parametrize(
    ("kind", "headline"),
    [
        ("wrong", "headline.answers_wrong"),
        ("stalled", "headline.runs_stalled"),
        ("failed", "headline.runs_failed"),
        ("void: late generator", "headline.runs_void"),
    ],
)
def test_a_run_that_does_not_count_is_counted_apart_and_enters_no_figure(
    kind: str, headline: str
) -> None:
    bad = run_of("q1", "penstock", 2, 9_999, kind)
    kept = [run for run in RUNS if (run.query, run.system, run.repeat) != ("q1", "penstock", 2)]
    found = {one.name: one for one in figures([*kept, bad])}
    assert found[headline].value == 1
    assert found["Q1.penstock.p99_ms"].repeats == (100.0, 200.0)
    assert found["Q1.ratio_p99_vs_tuned"].repeats == (2.0, 1.2)


def test_a_system_without_a_run_that_counts_has_no_figure_rather_than_a_made_up_one() -> None:
    bad = [run_of("q1", "penstock", n, 100, "wrong") for n in range(3)]
    found = {one.name for one in figures([*three("q1", "tuned", 1, 2, 3), *bad])}
    assert "Q1.penstock.p99_ms" not in found
    assert "Q1.ratio_p99_vs_tuned" not in found
    assert "headline.ratio_p99_vs_tuned_min" not in found


def test_the_table_shows_ratio_spread_and_what_does_not_count() -> None:
    runs = [*RUNS, run_of("q1", "penstock", 2, 50, "stalled")]
    said = io.StringIO()
    plan = plan_of(SUITES["nexmark"], quick=True, queries=("q1", "q18"))
    show(Console(file=said, width=80), plan, runs, figures(runs), [("tuned-files", "q18", "no")])
    text = said.getvalue()
    assert "2.00 (1.20-2.00)" in text
    assert "240 (200-800)" in text
    assert "3/4" in text
    assert "does not count: Q1 on penstock, repeat 3: stalled: why not" in text
    assert "not run: Q18 on tuned-files: no" in text
