"""The asynchronous commit in seeded worlds where everything goes wrong, and with bugs planted."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from simulation.planted_release_bugs import PLANTED
from simulation.release.setup import Setup, SinkKind, Violation
from simulation.release.world import Outcome, simulate

SEEDS_TO_FIND_A_BUG = 150

WORLDS: dict[str, tuple[bool, SinkKind]] = {
    "log and log sink": (True, "log"),
    "log and file sink": (True, "file"),
    "log and foreach sink": (True, "foreach"),
    "location and file sink": (False, "file"),
    "location and foreach sink": (False, "foreach"),
}


def drawn(seed: int, **fixed: Any) -> Setup:
    return replace(Setup.draw(random.Random(seed)), **fixed)


@pytest.mark.parametrize("format", [1, 2])
@pytest.mark.parametrize("world", WORLDS)
def test_every_invariant_holds_whatever_goes_wrong(world: str, format: int, seeds: range) -> None:
    with_log, sink = WORLDS[world]
    outcomes = [
        simulate(seed, drawn(seed, with_log=with_log, sink=sink, format=format)) for seed in seeds
    ]
    # Things did go wrong, and more than once in most worlds.
    assert sum(outcome.runs for outcome in outcomes) > 3 * len(outcomes)
    assert sum(outcome.faults for outcome in outcomes) > 5 * len(outcomes)


@pytest.mark.parametrize("format", [1, 2])
def test_every_invariant_holds_where_the_log_answers_before_it_syncs(
    format: int, seeds: range
) -> None:
    fixed = {"with_log": True, "sink": "log", "pieces": "changelog", "early": True}
    outcomes = [simulate(seed, drawn(seed, format=format, **fixed)) for seed in seeds]
    assert sum(outcome.runs for outcome in outcomes) > 3 * len(outcomes)


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str) -> None:
    planted = PLANTED[bug]
    said = []
    for seed in range(SEEDS_TO_FIND_A_BUG):
        try:
            simulate(seed, drawn(seed, **planted.where), parts=planted.parts)
        except Violation as violation:
            said.append(str(violation).partition("\n")[0])
            if planted.report in said[-1]:
                return
    pytest.fail(f"not found in {SEEDS_TO_FIND_A_BUG} worlds; they said {said[:3]}")


def violation_of(bug: str) -> str:
    for seed in range(SEEDS_TO_FIND_A_BUG):
        try:
            simulate(seed, parts=PLANTED[bug].parts)
        except Violation as violation:
            return str(violation)
    pytest.fail(f"no violation in {SEEDS_TO_FIND_A_BUG} worlds")


def test_the_same_seed_tells_the_same_story() -> None:
    assert simulate(11) == simulate(11)
    assert violation_of("offsets cut anew") == violation_of("offsets cut anew")


def test_a_violation_says_how_to_see_it_again() -> None:
    said = violation_of("offsets cut anew")
    call = said.partition("simulate; ")[2].partition('"\n')[0]
    outcome = eval(call, {"Setup": Setup, "simulate": simulate})
    assert isinstance(outcome, Outcome), "the same world is whole without the bug"
    assert f"simulate({outcome.seed}, {outcome.setup})" == call


def test_without_faults_a_query_runs_once_to_its_end() -> None:
    for seed in range(20):
        outcome = simulate(seed, drawn(seed, fault_rate=0.0))
        assert (outcome.runs, outcome.faults) == (1, 0)
