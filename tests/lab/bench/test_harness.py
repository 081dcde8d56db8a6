"""The harness around systems that misbehave: each fault is reported, none averaged away."""

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
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.plan import Conditions, Plan, plan_of
from penstock_lab.experiment.query_sets import QUERY_SETS
from penstock_lab.experiment.record import Noted
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.rig import Bench
from penstock_lab.experiment.run import Trial, run
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.turns import Tell
from penstock_lab.suites import compared
from penstock_lab.suites.compared import Open, Record
from penstock_lab.workloads.send import SenderReport
from penstock_lab.workloads.sending import Sent

STARTED_MS = 1_000_000
PLAN = msgspec.structs.replace(
    plan_of(QUERY_SETS["nexmark"], quick=True, queries=("q1", "q18")), again_max=0
)


def noted(
    conditions: Conditions,
    *,
    latency_ms: int = 100,
    lag_ms: float = 2.0,
    silent_after_s: float = 1e9,
    rows_different: int = 0,
) -> Noted:
    """A run that shows one row every 100 ms, each `latency_ms` after it was sent."""
    until_s = min(conditions.seconds, silent_after_s)
    sent_ms = [STARTED_MS + 100 * n for n in range(int(until_s * 10))]
    sightings = [Sighting((at + latency_ms) * 1000, np.array([at * 1000])) for at in sent_ms]
    sent = Sent(len(sent_ms), len(sent_ms), 1.0, 0, lag_ms, lag_ms, lag_ms, 1.0, 1.0, True)
    return Noted(
        sightings,
        SenderReport(sent, STARTED_MS, [lag_ms] * 10),
        rows_checked=50,
        rows_different=rows_different,
        differences=["q1, batch 3 (marker 9): committed but not expected price=1"] * rows_different,
    )


class Fake:
    """A system that does as it is told, run by run."""

    def __init__(self, name: str, faults: dict[tuple[str, str], dict[str, object]]) -> None:
        self.name, self.faults = name, faults
        self.warm_ups: list[float] = []

    def run(self, conditions: Conditions) -> Noted:
        self.warm_ups.append(conditions.warm_up_s)
        fault = self.faults.get((self.name, conditions.query), {})
        return noted(conditions, **fault)  # type: ignore[arg-type]


def faking(
    faults: dict[tuple[str, str], dict[str, object]], opened: list[Fake] | None = None
) -> Open:
    @contextlib.contextmanager
    def open_(plan: Plan, name: str, folder: Path) -> Iterator[Bench]:
        fake = Fake(name, faults)
        if opened is not None:
            opened.append(fake)
        yield fake

    return open_


def suite_with(opening: Open) -> Suite[Plan, Record]:
    """The suite, needing nothing, on systems that are opened like that."""
    return dataclasses.replace(
        compared.SUITES["nexmark"],
        runs=partial(compared.runs, opening=opening),
        require=lambda plan: None,
    )


def trial_of(
    opening: Open, folder: Path, plan: Plan = PLAN, tell: Tell = lambda _: None
) -> Trial[Plan, Record]:
    trial = Trial(suite_with(opening), plan, folder, tell)
    trial.execute()
    return trial


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
    trial = trial_of(faking({("penstock", "q1"): {**fault, "latency_ms": 9_000}}), tmp_path)
    bad = [record.run for record in trial.records if record.run.verdict.kind == kind]
    assert {(run.query, run.system) for run in bad} == {("q1", "penstock")}
    assert len(bad) == 3
    said = io.StringIO()
    whole = trial.report(Outlet(Console(file=said, width=160)))
    assert whole.figures[headline] == 3
    assert "Q1.penstock.p99_ms" not in whole.figures
    assert whole.figures["Q18.penstock.p99_ms"] == 100
    assert said.getvalue().count(f"Q1 on penstock, repeat 1: {kind}") == 1


def test_a_wrong_answer_makes_the_whole_suite_fail(tmp_path: Path) -> None:
    for fault, is_right in (({}, True), ({"rows_different": 1}, False)):
        faults: dict[tuple[str, str], dict[str, object]] = {("tuned", "q18"): dict(fault)}
        console = Console(file=io.StringIO(), width=160)
        suite = suite_with(faking(faults))
        assert run(suite, PLAN, tmp_path, print, Outlet(console)) is is_right


def test_systems_take_turns_in_going_first(tmp_path: Path) -> None:
    opened: list[Fake] = []
    trial_of(faking({}, opened), tmp_path)
    names = [fake.name for fake in opened]
    assert [names[n] for n in (0, 3, 6)] == ["default", "tuned", "penstock"]
    assert sorted(names) == sorted(["default", "tuned", "penstock"] * 3)
    assert [set(names[n : n + 3]) for n in (0, 3, 6)] == [{"default", "tuned", "penstock"}] * 3


def test_the_first_query_of_a_process_warms_up_longer(tmp_path: Path) -> None:
    opened: list[Fake] = []
    trial_of(faking({}, opened), tmp_path)
    assert all(fake.warm_ups == [PLAN.first_warm_up_s, PLAN.warm_up_s] for fake in opened)


def test_a_void_run_is_run_again_within_bounds_and_both_are_kept(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(PLAN, again_max=2)
    faults: dict[tuple[str, str], dict[str, object]] = {("tuned", "q1"): {"lag_ms": 50.0}}
    trial = trial_of(faking(faults), tmp_path, plan)
    assert sum(record.run.verdict.kind.startswith("void") for record in trial.records) == 3 + 2


def test_no_run_is_made_again_when_the_suite_has_taken_too_long(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(PLAN, again_max=2, again_until_s=0.0)
    trial = trial_of(faking({("tuned", "q1"): {"lag_ms": 50.0}}), tmp_path, plan)
    assert len(trial.records) == 18


def test_every_run_is_told_beforehand(tmp_path: Path) -> None:
    steps_told: list[str] = []
    trial_of(faking({}), tmp_path, tell=steps_told.append)
    assert len(steps_told) == compared.steps(PLAN) == 18
    assert steps_told[0] == "q1 on default, 1 of 3"


def test_a_system_that_does_not_start_fails_its_runs_and_leaves_the_others(tmp_path: Path) -> None:
    @contextlib.contextmanager
    def broken(plan: Plan, name: str, folder: Path) -> Iterator[Bench]:
        if name == "tuned":
            raise TryAgain("Spark did not start", code="worker_failed")
        yield Fake(name, {})

    trial = trial_of(broken, tmp_path)
    failed = [record.run for record in trial.records if record.run.verdict.kind == "failed"]
    assert {run.system for run in failed} == {"tuned"}
    assert len(failed) == 6
    assert "Spark did not start" in str(failed[0].verdict)
    assert sum(record.is_counted for record in trial.records) == 12


def test_what_was_measured_before_an_interrupt_is_written(tmp_path: Path) -> None:
    closed: list[str] = []

    @contextlib.contextmanager
    def interrupted(plan: Plan, name: str, folder: Path) -> Iterator[Bench]:
        fake = Fake(name, {})
        try:
            if name == "penstock":
                raise KeyboardInterrupt
            yield fake
        finally:
            closed.append(name)

    path = tmp_path / "result.json"
    console = Console(file=io.StringIO(), width=160)
    with pytest.raises(KeyboardInterrupt):
        run(suite_with(interrupted), PLAN, tmp_path, print, Outlet(console, path))
    written = json.loads(path.read_text())
    assert len(written["runs"]) == 4
    assert written["figures"]["Q1.tuned.p99_ms"] == 100
    assert closed == ["default", "tuned", "penstock"]
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_an_interrupt_within_a_run_closes_what_is_open(tmp_path: Path) -> None:
    closed: list[type[BaseException] | None] = []

    class Interrupted(Fake):
        def run(self, conditions: Conditions) -> Noted:
            raise KeyboardInterrupt

    class Opened(contextlib.AbstractContextManager[Bench]):
        def __enter__(self) -> Bench:
            return Interrupted("default", {})

        def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
            closed.append(kind)

    with pytest.raises(KeyboardInterrupt):
        trial_of(lambda *_: Opened(), tmp_path)
    assert len(closed) == 1
    assert closed[0] is not None, "it is told that it did not come to its end"
    assert list(tmp_path.iterdir()) == []
