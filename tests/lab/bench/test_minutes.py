"""Estimates of how long a suite takes, reckoned from its cells, repeats, warm-up and seconds."""

from __future__ import annotations

import msgspec
import pytest

from penstock_lab.cli.bench import SUITES, suite_named
from penstock_lab.experiment.minutes import AROUND_S, BATCH_S, START_S, about_s, minutes_of
from penstock_lab.experiment.plan import Plan, WarmUp, plan_of
from penstock_lab.experiment.query_sets import QUERY_SETS
from penstock_lab.suites.compared import queries_on
from penstock_lab.suites.floor.cells import plan_of as floor_plan
from penstock_lab.suites.floor.minutes import minutes_of as floor_minutes

QUICK = plan_of(QUERY_SETS["nexmark"], quick=True)


def minutes(plan: Plan) -> float:
    return minutes_of(plan, queries_on)


@pytest.mark.parametrize("name", ["floor", "nexmark", "linearroad", "cluster", "ysb"])
def test_a_suite_says_beforehand_how_long_it_takes(name: str) -> None:
    suite = suite_named(name)
    assert name in SUITES
    assert 1 < suite.minutes(suite.plan_of(quick=True)) < suite.minutes(suite.plan_of())


def test_an_estimate_is_of_processes_warm_ups_and_runs() -> None:
    plan = msgspec.structs.replace(QUICK, queries=("q1", "q3"), systems=("tuned",), repeats=4)
    # 40 batches of warm-up for the first query of a process, 10 for the next; 8 s each.
    each_s = START_S + 40 * BATCH_S + 10 * BATCH_S + 2 * (8.0 + AROUND_S)
    assert minutes(plan) == pytest.approx(4 * each_s / 60)
    assert minutes(msgspec.structs.replace(plan, measure_s=68.0)) == pytest.approx(
        (4 * each_s + 4 * 2 * 60) / 60
    )


def test_a_system_that_runs_fewer_queries_takes_less() -> None:
    # From files to files only what appends is run.
    plan = msgspec.structs.replace(QUICK, systems=("tuned-files",))
    assert len(queries_on(plan, "tuned-files")) < len(plan.queries)
    assert minutes(plan) < minutes(msgspec.structs.replace(plan, systems=("tuned",)))
    none = msgspec.structs.replace(plan, queries=("q4",))
    assert queries_on(none, "tuned-files") == []
    assert minutes(none) == 0


def test_a_warm_up_is_its_batches_within_its_seconds() -> None:
    assert about_s(QUICK, WarmUp(40.0, 10, 3.0)) == pytest.approx(10 * BATCH_S)
    assert about_s(QUICK, WarmUp(2.0, 10)) == 2.0
    assert about_s(QUICK, WarmUp(40.0, 1, 3.0)) == 3.0
    assert about_s(QUICK, WarmUp(12.0)) == 12.0
    behind_delay = msgspec.structs.replace(QUICK, store="remote80")
    assert about_s(behind_delay, WarmUp(40.0, 10)) == pytest.approx(30 * BATCH_S)


def test_floor_takes_as_long_as_its_repeats_queries_and_mechanisms() -> None:
    once = floor_plan(quick=True, repeats=1)
    filling = floor_minutes(msgspec.structs.replace(once, repeats=0))
    three = floor_plan(quick=True)
    assert floor_minutes(three) - filling == pytest.approx(3 * (floor_minutes(once) - filling))
    without_one, without_two = (
        floor_minutes(floor_plan(quick=True, queries=("lr_join",), without=without))
        for without in (("panes",), ("panes", "switches"))
    )
    assert without_one < without_two < 2 * without_one
    assert floor_minutes(floor_plan(quick=True, queries=("floor", "lr_join"))) > floor_minutes(
        three
    )
