"""The harness around systems that misbehave: each fault is reported, none averaged away."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from rich.console import Console

from penstock.errors import TryAgain
from penstock_lab.experiment import compare
from penstock_lab.experiment.harness import Bench, Harness, Open
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.outlet import Outlet
from penstock_lab.experiment.plan import Plan, plan_of, turns
from penstock_lab.experiment.record import Noted
from penstock_lab.experiment.suites import SUITES
from penstock_lab.workloads.send import Told
from penstock_lab.workloads.sending import Sent

STARTED_MS = 1_000_000
PLAN = msgspec.structs.replace(
    plan_of(SUITES["nexmark"], quick=True, queries=("q1", "q18")), again_max=0
)


def noted(
    plan: Plan,
    warm_up_s: float,
    *,
    latency_ms: int = 100,
    lag_ms: float = 2.0,
    silent_after_s: float = 1e9,
    rows_different: int = 0,
) -> Noted:
    """A run that shows one row every 100 ms, each `latency_ms` after it was sent."""
    until_s = min(warm_up_s + plan.measure_s, silent_after_s)
    sent_ms = [STARTED_MS + 100 * n for n in range(int(until_s * 10))]
    sightings = [Sighting((at + latency_ms) * 1000, np.array([at * 1000])) for at in sent_ms]
    sent = Sent(len(sent_ms), len(sent_ms), 1.0, 0, lag_ms, lag_ms, lag_ms, 1.0, 1.0, True)
    return Noted(
        sightings,
        Told(sent, STARTED_MS, [lag_ms] * 10),
        rows_checked=50,
        rows_different=rows_different,
        differences=["q1, batch 3 (marker 9): committed but not expected price=1"] * rows_different,
    )


class Fake:
    """A system that does as it is told, run by run."""

    def __init__(self, plan: Plan, name: str, faults: dict[tuple[str, str], dict[str, object]]):
        self.plan, self.name, self.faults = plan, name, faults
        self.warm_ups: list[float] = []

    def run(self, query_name: str, warm_up_s: float, rate: int | None = None) -> Noted:
        self.warm_ups.append(warm_up_s)
        fault = self.faults.get((self.name, query_name), {})
        return noted(self.plan, warm_up_s, **fault)  # type: ignore[arg-type]


def faking(
    faults: dict[tuple[str, str], dict[str, object]], opened: list[Fake] | None = None
) -> Open:
    @contextlib.contextmanager
    def open_(plan: Plan, name: str, folder: Path) -> Iterator[Bench]:
        fake = Fake(plan, name, faults)
        if opened is not None:
            opened.append(fake)
        yield fake

    return open_


def executed(faults: dict[tuple[str, str], dict[str, object]], tmp_path: Path) -> Harness:
    harness = Harness(PLAN, tmp_path, lambda _: None, faking(faults))
    harness.execute()
    return harness


@pytest.mark.parametrize(
    ("fault", "kind", "headline"),
    [
        ({"rows_different": 2}, "wrong", "headline.answers_wrong"),
        ({"lag_ms": 35.0}, "void: late generator", "headline.runs_void"),
        ({"silent_after_s": 1.0}, "stalled", "headline.runs_stalled"),
    ],
)
def test_a_planted_fault_is_reported_and_keeps_out_of_the_figures(
    tmp_path: Path, fault: dict[str, object], kind: str, headline: str
) -> None:
    harness = executed({("penstock", "q1"): {**fault, "latency_ms": 9_000}}, tmp_path)
    bad = [run for run in harness.runs if run.verdict.kind == kind]
    assert {(run.query, run.system) for run in bad} == {("q1", "penstock")}
    assert len(bad) == 3
    said = io.StringIO()
    whole = compare.report(harness, Outlet(Console(file=said, width=160)))
    assert whole.figures[headline] == 3
    assert "Q1.penstock.p99_ms" not in whole.figures
    assert whole.figures["Q18.penstock.p99_ms"] == 100
    assert said.getvalue().count(f"Q1 on penstock, repeat 1: {kind}") == 1


def test_a_wrong_answer_makes_the_whole_suite_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "require_all", lambda *_, **__: None)
    for fault, is_right in (({}, True), ({"rows_different": 1}, False)):
        faults: dict[tuple[str, str], dict[str, object]] = {("tuned", "q18"): dict(fault)}
        console = Console(file=io.StringIO(), width=160)
        opening = faking(faults)
        assert compare.run(PLAN, tmp_path, print, Outlet(console), opening=opening) is is_right


def test_systems_take_turns_in_going_first(tmp_path: Path) -> None:
    opened: list[Fake] = []
    Harness(PLAN, tmp_path, lambda _: None, faking({}, opened)).execute()
    names = [fake.name for fake in opened]
    assert [names[n] for n in (0, 3, 6)] == ["default", "tuned", "penstock"]
    assert sorted(names) == sorted(["default", "tuned", "penstock"] * 3)
    assert names == [turn.system for turn in turns(PLAN)]


def test_the_first_query_of_a_process_warms_up_longer(tmp_path: Path) -> None:
    opened: list[Fake] = []
    Harness(PLAN, tmp_path, lambda _: None, faking({}, opened)).execute()
    assert all(fake.warm_ups == [PLAN.first_warm_up_s, PLAN.warm_up_s] for fake in opened)


def test_a_void_run_is_run_again_within_bounds_and_both_are_kept(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(PLAN, again_max=2)
    faults: dict[tuple[str, str], dict[str, object]] = {("tuned", "q1"): {"lag_ms": 50.0}}
    harness = Harness(plan, tmp_path, lambda _: None, faking(faults))
    harness.execute()
    assert sum(run.verdict.kind.startswith("void") for run in harness.runs) == 3 + 2


def test_every_run_is_told_beforehand(tmp_path: Path) -> None:
    told: list[str] = []
    harness = Harness(PLAN, tmp_path, told.append, faking({}))
    harness.execute()
    assert len(told) == harness.steps == 18
    assert told[0] == "q1 on default, 1 of 3"


def test_a_system_that_does_not_start_fails_its_runs_and_leaves_the_others(tmp_path: Path) -> None:
    @contextlib.contextmanager
    def broken(plan: Plan, name: str, folder: Path) -> Iterator[Bench]:
        if name == "tuned":
            raise TryAgain("Spark did not start", code="worker_failed")
        yield Fake(plan, name, {})

    harness = Harness(PLAN, tmp_path, lambda _: None, broken)
    harness.execute()
    failed = [run for run in harness.runs if run.verdict.kind == "failed"]
    assert {run.system for run in failed} == {"tuned"}
    assert len(failed) == 6
    assert "Spark did not start" in str(failed[0].verdict)
    assert sum(run.is_counted for run in harness.runs) == 12


def test_what_was_measured_before_an_interrupt_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "require_all", lambda *_, **__: None)
    closed: list[str] = []

    @contextlib.contextmanager
    def interrupted(plan: Plan, name: str, folder: Path) -> Iterator[Bench]:
        fake = Fake(plan, name, {})
        try:
            if name == "penstock":
                raise KeyboardInterrupt
            yield fake
        finally:
            closed.append(name)

    path = tmp_path / "result.json"
    console = Console(file=io.StringIO(), width=160)
    with pytest.raises(KeyboardInterrupt):
        compare.run(PLAN, tmp_path, print, Outlet(console, path), opening=interrupted)
    written = json.loads(path.read_text())
    assert len(written["runs"]) == 4
    assert written["figures"]["Q1.tuned.p99_ms"] == 100
    assert closed == ["default", "tuned", "penstock"]
    assert [one.name for one in tmp_path.iterdir()] == ["result.json"]
