"""The search for the highest rate that holds, without running anything."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from rich.console import Console

from penstock.errors import BadCall
from penstock_lab.experiment.latency import Latencies, Sighting
from penstock_lab.experiment.plan import Conditions, Plan
from penstock_lab.experiment.record import Noted, Run
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.rig import Bench
from penstock_lab.experiment.run import run
from penstock_lab.experiment.search import (
    PRECISION,
    Searched,
    Tried,
    how,
    is_sustained,
    next_rate,
)
from penstock_lab.experiment.verdict import Verdict
from penstock_lab.suites import sustain
from penstock_lab.suites.compared import Cell
from penstock_lab.suites.sustain import figure, search_of, steps
from penstock_lab.workloads.send import SenderReport
from penstock_lab.workloads.sending import Sent


def searched(capacity: int, first: int = 5_000, rate_max: int = 160_000, tries: int = 12) -> int:
    tried: list[Tried] = []
    while (rate := next_rate(tried, first, rate_max, tries)) is not None:
        assert all(rate != tried_rate.rate for tried_rate in tried), "no rate is worth a second try"
        tried.append(Tried(rate, rate <= capacity))
    assert len(tried) <= tries
    return max((tried_rate.rate for tried_rate in tried if tried_rate.is_sustained), default=0)


@pytest.mark.parametrize("capacity", [300, 1_000, 4_999, 5_000, 7_200, 33_000, 81_000, 159_999])
def test_the_rate_found_holds_and_one_a_little_higher_does_not(capacity: int) -> None:
    rate = searched(capacity)
    assert rate <= capacity
    assert capacity <= rate * PRECISION + 1


def test_a_rate_that_does_not_hold_at_first_is_halved_and_then_its_interval() -> None:
    tried: list[Tried] = []
    while (rate := next_rate(tried, 4_000, 16_000, 4)) is not None:
        tried.append(Tried(rate, rate <= 2_700))
    assert [attempt.rate for attempt in tried] == [4_000, 2_000, 3_000, 2_500]


def test_a_system_faster_than_the_highest_rate_is_not_pushed_beyond_it() -> None:
    assert searched(10**9, rate_max=40_000) == 40_000


def test_a_system_that_holds_no_rate_ends_the_search() -> None:
    assert searched(0, tries=20) == 0


def run_with(slope: float | None, kind: str = "ok") -> Run:
    latency = Latencies(1, 1.0, 1.0, 1.0, 1.0, 1.0)
    verdict = msgspec.convert({"kind": kind}, Verdict)
    return Run("q1", "tuned", 0, verdict, 5_000, 1, latency, slope_ms_per_s=slope)


@pytest.mark.parametrize(
    ("slope", "kind", "held"),
    [
        (0.0, "ok", True),
        (-300.0, "ok", True),
        (49.0, "ok", True),
        (51.0, "ok", False),
        (None, "ok", False),
        (0.0, "wrong", False),
        (0.0, "stalled", False),
    ],
)
def test_a_rate_holds_if_the_run_counts_and_latency_does_not_rise(
    slope: float | None, kind: str, held: bool
) -> None:
    assert is_sustained(run_with(slope, kind)) is held


@pytest.mark.parametrize(("busy", "held"), [(0.7, True), (0.89, True), (0.95, False)])
def test_a_slope_of_few_batches_says_nothing_of_a_query_with_time_to_spare(
    busy: float, held: bool
) -> None:
    run = msgspec.structs.replace(run_with(120.0), busy_share=busy)
    assert is_sustained(run) is held
    assert is_sustained(msgspec.structs.replace(run_with(None), busy_share=busy)) is held
    stalled = msgspec.structs.replace(run_with(None, "stalled"), busy_share=busy)
    assert not is_sustained(stalled), "what was sent was not worked off"


def of(*tried: Tried) -> Searched:
    return Searched(Cell("q18"), "tuned", tried)


def test_the_figure_is_named_by_query_and_system_and_says_what_stopped_it() -> None:
    rises = Tried(10_000, False, "latency rises")
    sustained = figure(of(Tried(5_000, True, "held"), rises, Tried(7_500, True, "held")))
    assert (sustained.name, sustained.value) == ("Q18.tuned.sustained_per_s", 7_500)
    assert sustained.meaning.endswith("at 10,000 latency rises")


def test_a_system_that_held_every_rate_is_not_said_to_be_at_its_limit() -> None:
    assert "the limit is higher" in figure(of(Tried(5_000, True), Tried(10_000, True))).meaning


def test_how_a_rate_went_is_told_in_words() -> None:
    late = Verdict("void: late generator", ("the sender's lag p99 is 90 ms, over 20 ms",))
    assert how(run_with(0.0)) == "held"
    assert how(run_with(99.0)) == "latency rises"
    assert how(run_with(None)) == "too few results to tell"
    assert "the sender's lag" in how(msgspec.structs.replace(run_with(0.0), verdict=late))


def test_a_search_covers_every_pair_of_query_and_system() -> None:
    search = search_of(quick=True, rate=20_000)
    pairs = {(plan.queries, plan.systems) for plan in search.plans}
    assert len(pairs) == len(search.plans) == 4
    assert steps(search) == 4 * search.tries_max
    assert search.rate_max == 20_000
    assert len(search_of().plans) == 6


def test_a_query_that_needs_more_than_a_rate_is_refused() -> None:
    with pytest.raises(BadCall, match="ysb"):
        search_of(queries=("ysb",), quick=True)


class Limited:
    """A system that works off so many events a second and falls behind beyond that."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity

    def run(self, conditions: Conditions) -> Noted:
        slower = max(1.0, conditions.rate / self.capacity)
        sent_us = [int(n * 1e5) for n in range(int(conditions.seconds * 10))]
        seen = [Sighting(int(at * slower) + 200_000, np.array([at])) for at in sent_us]
        sent = Sent(1, 1, 1.0, 0, 1.0, 1.0, 1.0, 1.0, 1.0, True)
        return Noted(seen, SenderReport(sent, 0, [1.0]), rows_checked=1)


def test_a_search_finds_and_writes_what_a_system_can_hold(tmp_path: Path) -> None:
    @contextlib.contextmanager
    def opening(plan: Plan, name: str, folder: Path) -> Iterator[Bench]:
        yield Limited({"tuned": 11_000, "penstock": 30_000}[name])

    search = search_of(queries=("q1",), chosen=("tuned", "penstock"))
    path = tmp_path / "sustain.json"
    console = Console(file=io.StringIO(), width=160)
    runs = partial(sustain.runs, opening=opening)
    suite = dataclasses.replace(sustain.SUITE, runs=runs, require=lambda plan: None)
    assert run(suite, search, tmp_path, lambda _: None, Outlet(console, path))
    by_name = json.loads(path.read_text())["figures"]
    assert by_name["Q1.tuned.sustained_per_s"] == pytest.approx(11_000, rel=0.2)
    assert by_name["Q1.penstock.sustained_per_s"] == pytest.approx(30_000, rel=0.2)
