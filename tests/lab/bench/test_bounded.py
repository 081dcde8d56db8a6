"""The bounded suite: how much lower, and whether ours holds a rate at which a trigger grows."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.visible_rows import Span
from penstock_lab.suites.bounded.cells import part_of, plan_of
from penstock_lab.suites.bounded.figures import figures
from penstock_lab.suites.bounded.runs import Record
from penstock_lab.suites.bounded.tables import draw, limit_sentence, show
from support.bench_records import bounded_records

PLAN = plan_of(quick=True)


def with_mean(record: Record, mean_ms: float) -> Record:
    query_run = msgspec.structs.replace(record.query_run, mean_ms=mean_ms)
    return msgspec.structs.replace(record, query_run=query_run)


def test_the_reduction_is_of_the_mean_and_has_the_papers_goal_for_tumbling_windows() -> None:
    records = [
        with_mean(record, 10_000.0 if record.system == "static" else 2_500.0)
        for record in bounded_records()
    ]
    made = {figure.name: figure for figure in figures(PLAN, records)}
    assert made["headline.mean_reduction_tumbling"].value == pytest.approx(75.0)
    assert str(made["headline.mean_reduction_tumbling"].goal) == "at least 70.7"
    assert made["headline.mean_reduction_sliding"].goal is None


def test_past_the_triggers_limit_both_are_shown_and_said_in_words() -> None:
    records = bounded_records()
    made = {figure.name: figure.value for figure in figures(PLAN, records)}
    assert made["lr_join_30_5.static_fails_at"] == 16_000
    assert made["lr_join_30_5@16000.static.past_growth_ms_per_s"] == 99.0
    assert made["lr_join_30_5@16000.slide.past_growth_ms_per_s"] == 1.0
    sentence = limit_sentence("lr_join_30_5", records)
    assert sentence == "lr_join_30_5 at 16,000/s: static grows, slide does not grow"
    assert "no rate was found" in limit_sentence("lr_join_30_tumbling", records)


def test_the_trigger_is_ten_seconds_and_the_policies_have_none() -> None:
    assert part_of("lr_join_30_5", "static").every_s == 10.0
    slide = part_of("lr_join_30_5", "slide")
    assert (slide.every_s, slide.options) == (0.0, {"policy": "slide", "slide": "5s"})
    assert part_of("lr_join_30_tumbling", "running-mean").options == {"policy": "running-mean"}


def test_a_quick_run_measures_three_minutes_each_and_a_full_one_twenty() -> None:
    assert PLAN.measure_s == 180.0
    assert PLAN.minutes < 30
    assert plan_of().measure_s == 1_200.0


def test_batches_are_shown_and_drawn_over_time(tmp_path: Path) -> None:
    spans = [Span(n, n * 1e4, n * 1e4 + 900.0, 9_000 + n, oldest_ms=10_500.0) for n in range(18)]
    records = [
        msgspec.structs.replace(
            record, query_run=msgspec.structs.replace(record.query_run, spans=spans)
        )
        for record in bounded_records()
    ]
    shown = io.StringIO()
    made = figures(PLAN, records)
    show(Console(file=shown, width=120), PLAN, records, made)
    assert "slide does not grow" in shown.getvalue()
    draw(PLAN, records, made, tmp_path / "bounded.png")
    assert (tmp_path / "bounded.png").stat().st_size > 1_000
