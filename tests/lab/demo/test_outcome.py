"""What the demo says and how it exits, for right and for wrong answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from penstock_lab.cli.demo import demo
from penstock_lab.demo import run as demo_run
from penstock_lab.demo import screen
from penstock_lab.demo.outcome import Outcome, QueryOutcome, latency_ms
from penstock_lab.experiment.latency import Sighting
from penstock_lab.workloads.send import Sent


def outcome(different: int = 0, committed: int = 90, lag_ms: float = 1.5) -> Outcome:
    sent = Sent(2_000, 50, 1.0, 0, 0.1, lag_ms, 9.0, 4.0, 8.0, True)
    totals = QueryOutcome("auction_totals", 4, committed, 250.0, 480.0, 95, different)
    leaders = QueryOutcome("category_leaders", 3, 30, None, None, 40, 0)
    differences = ("auction_totals, batch 2: committed but not expected auction=1000",)
    return Outcome(45.0, 2_000, 7, 15.0, sent, (totals, leaders), differences[: different or 0])


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (outcome(), 0, "all equal what DuckDB computes"),
        (outcome(different=1), 1, "auction=1000"),
        (outcome(committed=0), 1, "auction_totals committed nothing"),
    ],
)
def test_the_exit_code_follows_the_verdict(
    given: Outcome, code: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_run, "run", lambda *_: given)
    monkeypatch.setattr("penstock_lab.cli.demo.end_on_sigterm", lambda: None)
    path = tmp_path / "demo.json"
    said = CliRunner().invoke(demo, ["--json", str(path)])
    assert said.exit_code == code
    assert words in said.output
    assert json.loads(path.read_text())["figures"]["rows_checked"] == 135


def test_figures_leave_out_what_was_not_measured() -> None:
    figures = outcome().figures()
    assert figures["auction_totals.latency_ms_p99"] == 480.0
    assert "category_leaders.latency_ms_p99" not in figures


def test_a_late_sender_voids_the_latencies_and_says_so() -> None:
    console = Console(width=200)
    with console.capture() as said:
        screen.show(console, outcome(lag_ms=35.0))
    assert "do not count" in said.get()


def test_nothing_is_cut_off_on_a_narrow_terminal() -> None:
    console = Console(width=80)
    moment = screen.Moment(
        "running",
        20,
        40_000,
        2_000,
        (screen.QueryMoment("category_leaders", 1_000, 999_999, 1e4, 2e4),),
    )
    with console.capture() as said:
        screen.show(console, outcome())
        console.print(screen.live(moment))
    assert "…" not in said.get()


def test_latency_is_the_age_of_a_row_when_it_was_seen() -> None:
    # sent (ms)    1000      1000      2000
    # seen (ms)         1400                2100     age: 400, 400, 100
    sightings = [
        Sighting(1_400_000, np.array([1_000_000, 1_000_000])),
        Sighting(2_100_000, np.array([2_000_000])),
    ]
    assert latency_ms(sightings, 50) == 400
    assert latency_ms(sightings, 50, seen_after_ms=1_400) == 100
    assert latency_ms(sightings, 50, sent_after_ms=1_000) == 100
    assert latency_ms(sightings, 50, sent_after_ms=2_000) is None
    assert latency_ms([], 50) is None
