"""The order of runs, and systems that misbehave: each fault is kept, and the others go on."""

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

from penstock.errors import TryAgain
from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.plan import Conditions, WarmUp
from penstock_lab.experiment.record import Noted
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.rig import Bench
from penstock_lab.experiment.run import Trial, run
from penstock_lab.experiment.suite import Suite
from penstock_lab.suites import commit
from penstock_lab.suites.commit.cells import Cell, Group, Growth, Plan, Sustain
from penstock_lab.suites.commit.figures import searches
from penstock_lab.suites.commit.runs import Open, Record
from penstock_lab.workloads import send
from penstock_lab.workloads.sending import Sent

STARTED_MS = 1_000_000
LOCAL = Cell("lr_join_30_1", "local", 0.0, True)
REMOTE = Cell("lr_join_30_1", "remote20", 0.0, True)
PLAN = Plan(
    (Group(("tuned", "full"), (LOCAL, REMOTE)),),
    repeats=2,
    measure_s=4.0,
    measure_batches=2,
    warm_up=WarmUp(1.0),
    first_warm_up=WarmUp(2.0),
    again_max=1,
)


def noted(seconds: float, *, lag_ms: float = 1.0, rising: bool = False) -> Noted:
    """A row every 100 ms, seen 100 ms after it was sent, or ever later."""
    sent_ms = [STARTED_MS + 100 * n for n in range(int(seconds * 10))]
    sightings = [
        Sighting((at + 100 + (at - STARTED_MS) * rising) * 1000, np.array([at * 1000]))
        for at in sent_ms
    ]
    sent = Sent(len(sent_ms), len(sent_ms), seconds, 0, lag_ms, lag_ms, lag_ms, 1.0, 1.0, True)
    return Noted(sightings, send.SenderReport(sent, STARTED_MS, [lag_ms] * 10), rows_checked=5)


class Fake:
    """A system that notes what it is asked to run, and fails where it is told to."""

    def __init__(self, name: str, asked: list[tuple[str, Conditions]]) -> None:
        self.name, self.asked = name, asked
        self.limit = 1_000_000
        self.dies_at: str | None = None
        self.late_once = False
        self.warm_after_ms: int | None = None

    def run(self, conditions: Conditions) -> Noted:
        self.asked.append((self.name, conditions))
        if conditions.store == self.dies_at:
            raise TryAgain("Spark did not come back", code="worker_failed")
        lag_ms, self.late_once = (50.0 if self.late_once else 1.0), False
        rising = conditions.rate > self.limit
        run_noted = noted(conditions.seconds, lag_ms=lag_ms, rising=rising)
        run_noted.batches = [Timed(n, STARTED_MS + 500 * n, 10, 400.0, 9.0) for n in range(40)]
        run_noted.rss_mb = 700.0
        if self.warm_after_ms is not None:
            run_noted.warm_ms, run_noted.warm_up_batches = STARTED_MS + self.warm_after_ms, 6
        return run_noted


def opening(fakes: dict[str, Fake], closed: list[str]) -> Open:
    @contextlib.contextmanager
    def open_(plan: Plan, group: Group, name: str, folder: Path) -> Iterator[Bench]:
        if name not in fakes:
            raise TryAgain(f"{name} does not start", code="worker_failed")
        try:
            yield fakes[name]
        finally:
            closed.append(name)

    return open_


def fakes_of(*names: str) -> tuple[dict[str, Fake], list[tuple[str, Conditions]]]:
    asked: list[tuple[str, Conditions]] = []
    return {name: Fake(name, asked) for name in names}, asked


def suite_with(open_: Open) -> Suite[Plan, Record]:
    runs = partial(commit.runs.runs, opening=open_)
    return dataclasses.replace(commit.SUITE, runs=runs, require=lambda plan: None)


def executed(plan: Plan, fakes: dict[str, Fake], folder: Path) -> list[Record]:
    trial = Trial(suite_with(opening(fakes, [])), plan, folder, lambda _: None)
    trial.execute()
    return trial.records


def test_systems_take_turns_at_every_cell_in_processes_that_stay(tmp_path: Path) -> None:
    fakes, asked = fakes_of("tuned", "full")
    closed: list[str] = []
    Trial(suite_with(opening(fakes, closed)), PLAN, tmp_path, lambda _: None).execute()
    assert [(name, conditions.store) for name, conditions in asked] == [
        ("tuned", "local"),
        ("full", "local"),
        ("full", "remote20"),
        ("tuned", "remote20"),
        ("full", "local"),
        ("tuned", "local"),
        ("tuned", "remote20"),
        ("full", "remote20"),
    ]
    assert sorted(closed) == ["full", "tuned"]
    assert list(tmp_path.iterdir()) == []


def test_only_the_first_run_of_a_process_is_warmed_up_for_longer(tmp_path: Path) -> None:
    fakes, asked = fakes_of("tuned", "full")
    executed(PLAN, fakes, tmp_path)
    assert [conditions.warm_up_s for _, conditions in asked] == [2.0, 2.0, *[1.0] * 6]


def test_batches_of_the_measured_stretch_are_cut_out(tmp_path: Path) -> None:
    fakes, _ = fakes_of("tuned", "full")
    second = executed(PLAN, fakes, tmp_path)[-1]
    # Warm-up 1 s, then 4 s: batches of 400 ms that begin every 500 ms, from 1.0 s to 4.5 s.
    assert len(second.batches) == 40
    assert len(second.took_ms) == 8
    assert second.rss_mb == 700.0


def test_a_warm_up_by_batches_is_asked_for_and_ends_where_the_rig_says(tmp_path: Path) -> None:
    fakes, asked = fakes_of("tuned", "full")
    fakes["full"].warm_after_ms = 3_000
    plan = msgspec.structs.replace(PLAN, warm_up=WarmUp(5.0, 6, 1.0), repeats=1)
    records = executed(plan, fakes, tmp_path)
    _, conditions = asked[-1]
    assert (conditions.warm_up_batches, conditions.warm_up_s) == (6, 5.0)
    assert conditions.warm_up_least_s == 1.0
    ours = next(record for record in records if record.system == "full" and record.cell == REMOTE)
    assert ours.run.warm_up_s == 3.0
    assert ours.run.warm_up_batches == 6
    # From 3 s on for 4 s, by batches of 400 ms that begin every 500 ms.
    assert len(ours.took_ms) == 8
    assert ours.run.latency is not None
    assert ours.run.latency.rows == 10 * (5 + 4 - 3) - 1, "nor do rows of the warm-up count"


def test_a_system_that_does_not_start_fails_its_runs_and_no_others(tmp_path: Path) -> None:
    fakes, _ = fakes_of("tuned")
    runs = executed(PLAN, fakes, tmp_path)
    assert {(record.system, record.run.verdict.kind) for record in runs} == {
        ("tuned", "ok"),
        ("full", "failed"),
    }


def test_a_system_that_cannot_be_replaced_is_not_asked_again(tmp_path: Path) -> None:
    fakes, asked = fakes_of("tuned", "full")
    fakes["full"].dies_at = "remote20"
    runs = executed(PLAN, fakes, tmp_path)
    assert sum(name == "full" for name, _ in asked) == 2
    kinds = [record.run.verdict.kind for record in runs if record.system == "full"]
    assert kinds == ["ok", "failed", "failed", "failed"]


def test_a_run_with_a_late_sender_is_run_once_more(tmp_path: Path) -> None:
    fakes, _ = fakes_of("tuned", "full")
    fakes["full"].late_once = True
    runs = executed(PLAN, fakes, tmp_path)
    first = [
        record.run.verdict.kind
        for record in runs
        if record.system == "full" and record.cell == LOCAL
    ]
    assert first == ["void: late generator", "ok", "ok"]


@pytest.mark.parametrize(("limit", "held"), [(14_000, 10_000), (30_000, 20_000)])
def test_the_search_finds_the_highest_rate_that_holds(
    limit: int, held: int, tmp_path: Path
) -> None:
    fakes, _ = fakes_of("tuned", "full")
    fakes["full"].limit = limit
    plan = msgspec.structs.replace(
        PLAN, groups=(), sustain=Sustain((REMOTE,), ("full",), 10_000, 80_000, tries_max=3)
    )
    records = executed(plan, fakes, tmp_path)
    (search,) = searches(plan, records)
    assert search.held == held
    assert {record.kind for record in records} == {"sustain"}
    assert searches(plan, records[:-1]) == [], "a search that was cut short has found nothing"


def test_the_suite_writes_a_file_a_table_and_whether_it_is_right(tmp_path: Path) -> None:
    fakes, _ = fakes_of("tuned", "full")
    plan = msgspec.structs.replace(PLAN, growth=Growth((("full", LOCAL),), 8, 8.0, WarmUp(1.0)))
    out = io.StringIO()
    outlet = Outlet(Console(file=out, width=100), tmp_path / "commit.json")
    is_right = run(suite_with(opening(fakes, [])), plan, tmp_path, lambda _: None, outlet)
    assert is_right
    whole = json.loads((tmp_path / "commit.json").read_text())
    assert whole["suite"] == "commit"
    assert whole["figures"]["headline.batch_ms_growth"] == 1.0
    assert whole["figures"]["headline.event_p99_ratio_local_min"] == 1.0
    assert len(whole["runs"]) == 9
    assert "headline.memory_full_over_sync" in out.getvalue()
