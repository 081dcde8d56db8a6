"""The recovery suite around runs that are made up: turns, figures, a wrong answer, and its plan."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from functools import partial
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from rich.console import Console

from penstock_lab.cli.bench import bench
from penstock_lab.experiment.filled import FilledState
from penstock_lab.experiment.filled_room import FilledRoom
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.experiment.suite import Suite
from penstock_lab.measure.recoveries import DRIVER_COLD, EXECUTOR, Recovered, RecoverySystem
from penstock_lab.suites import recovery
from penstock_lab.suites.recovery.cells import (
    ARCHIVE_S,
    AROUND_S,
    BARE,
    FILL_S,
    IN_LOG,
    KILLS,
    OURS,
    SPARK,
    SPARK_ARCHIVE,
    Plan,
    plan_of,
)

TIMES = {
    SPARK: 9_000.0,
    SPARK_ARCHIVE: 5_000.0,
    OURS: 6_000.0,
    IN_LOG: 7_000.0,
    BARE: 8_000.0,
}
PLAN = plan_of(quick=True)


def filled(plan: Plan, system: RecoverySystem, room: FilledRoom, folder: Path) -> FilledState:
    return FilledState("q18", str(folder), {})


def suite_with(order: list[str], wrong: str = "", failing: str = "") -> Suite[Plan, Recovered]:
    def running(
        plan: Plan,
        system: RecoverySystem,
        room: FilledRoom,
        state: FilledState,
        folder: Path,
        archives: Path,
        repeat: int,
        kills: tuple[str, ...],
    ) -> Recovered:
        order.append(f"{repeat} {system.name} {kills[0]}")
        if system.name == failing:
            return Recovered(system.name, repeat, error="no marker came")
        ms = dict.fromkeys(kills, TIMES[system.name] + repeat)
        different = 3 if system.name == wrong else 0
        return Recovered(system.name, repeat, ms, 50, different, ("one row too many",))

    def entering(folder: Path) -> contextlib.AbstractContextManager[FilledRoom]:
        return contextlib.nullcontext(FilledRoom(folder))

    def archiving(folder: Path) -> Path:
        order.append("archive")
        return folder

    runs = partial(
        recovery.runs.runs,
        filling=filled,
        running=running,
        entering=entering,
        archiving=archiving,
    )
    return dataclasses.replace(recovery.SUITE, runs=runs, require=lambda plan: None)


def reported(suite: Suite[Plan, Recovered], folder: Path) -> tuple[bool, dict[str, float], str]:
    shown = io.StringIO()
    outlet = Outlet(Console(file=shown, width=140), folder / "recovery.json")
    is_right = run(suite, PLAN, folder, lambda _: None, outlet)
    written = msgspec.json.decode((folder / "recovery.json").read_bytes())
    return is_right, written["figures"], shown.getvalue()


def test_systems_take_turns_and_the_cluster_comes_last_in_a_repeat(tmp_path: Path) -> None:
    order: list[str] = []
    reported(suite_with(order), tmp_path)
    assert order[:9] == [
        "archive",
        "0 spark driver.cold",
        "0 spark-archive driver.cold",
        "0 penstock driver.cold",
        "0 penstock-log driver.cold",
        "0 penstock-bare driver.cold",
        "0 spark executor",
        "0 penstock executor",
        "0 penstock-log executor",
    ]
    assert order[9] == "1 spark-archive driver.cold", "who goes first changes"
    assert len(order) == 1 + 8 * PLAN.repeats


def test_figures_have_the_names_that_scripts_read(tmp_path: Path) -> None:
    is_right, figures, shown = reported(suite_with([]), tmp_path)
    assert is_right
    assert figures["driver.ms_p50"] == figures["server.ms_p50"] == 6_001
    assert figures["executor.ms_p50"] == 6_001
    assert figures["headline.vs_spark"] == round(9_001 / 6_001, 3)
    assert figures["headline.vs_spark_archive"] == round(5_001 / 6_001, 3)
    assert figures["penstock-log.driver.warm.ms"] == 7_001
    assert figures["headline.archive_gives"] == round(8_001 / 6_001, 3)
    assert "penstock-bare.server.ms" not in figures, "it starts as ours does"
    assert figures["penstock-log.executor.ms"] == 7_001
    assert "penstock-bare.executor.ms" not in figures
    assert "headline.vs_spark" in shown


def test_a_planted_wrong_answer_is_named_and_enters_no_figure(tmp_path: Path) -> None:
    is_right, figures, shown = reported(suite_with([], wrong=OURS), tmp_path)
    assert not is_right
    assert figures["headline.answers_wrong"] == 2 * PLAN.repeats
    assert "driver.ms_p50" not in figures
    assert "does not count: penstock, repeat 1: 3 of 50 rows differ" in shown
    assert "one row too many" in shown


def test_a_run_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    is_right, figures, shown = reported(suite_with([], failing=SPARK), tmp_path)
    assert is_right, "nothing that it answered was wrong"
    assert figures["headline.runs_failed"] == 2 * PLAN.repeats
    assert "headline.vs_spark" not in figures
    assert "no marker came" in shown


def test_who_has_an_archive_and_who_has_not_differ_in_nothing_else() -> None:
    systems = recovery.cells.SYSTEMS
    for bare, given in ((SPARK, SPARK_ARCHIVE), (BARE, OURS)):
        alike = msgspec.structs.replace(
            systems[given],
            name=bare,
            words=systems[bare].words,
            has_archive=False,
            filled_as=systems[bare].filled_as,
        )
        assert alike == systems[bare]
        assert systems[given].has_archive
        assert PLAN.fill_of(bare) == PLAN.fill_of(given)


def test_executors_are_killed_with_snapshots_in_the_log_too() -> None:
    for plan in (PLAN, plan_of()):
        assert plan.clustered == (SPARK, OURS, IN_LOG)


def test_the_estimate_has_the_kills_that_are_made_and_no_others() -> None:
    parts = [plan_of(quick=True, kills=(kill,)) for kill in KILLS]
    whole = plan_of(quick=True)
    # Each begins with an archive and filled states; each run starts drivers and checks rows.
    begin = (ARCHIVE_S + len(whole.filled) * FILL_S) / 60
    around = whole.repeats * AROUND_S / 60
    starts = sum(plan.local_runs for plan in parts) - whole.local_runs
    together = sum(plan.minutes for plan in parts) - (len(parts) - 1) * begin - starts * around
    assert together == pytest.approx(whole.minutes)
    cold = plan_of(quick=True, kills=(DRIVER_COLD,))
    assert cold.minutes < whole.minutes / 2


def test_repeats_are_as_many_as_asked_for_or_those_of_the_size() -> None:
    assert (plan_of(quick=True).repeats, plan_of().repeats) == (3, 10)
    assert plan_of(quick=True, repeats=1).repeats == 1
    assert plan_of(repeats=2).minutes < plan_of().minutes
    assert "--repeats" in CliRunner().invoke(bench, ["recovery", "--help"]).output


def test_a_kill_alone_can_be_asked_for() -> None:
    assert plan_of(kills=("server",)).clustered == ()
    assert plan_of(kills=(EXECUTOR,)).local_kills == ()
