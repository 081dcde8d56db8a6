"""The log, its writers and readers in seeded worlds where everything goes wrong, and with bugs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from simulation.log.setup import LogSetup
from simulation.log.world import LogOutcome, simulate_log
from simulation.planted_early_bugs import CRASHES, EARLY
from simulation.planted_log_bugs import LOG
from simulation.planted_stream_bugs import LIFE
from simulation.release.setup import Violation

PLANTED = LOG | LIFE | EARLY

WORLDS: dict[str, dict[str, Any]] = {
    "one server that has the log to itself": {"servers": 1},
    "two servers before a replicated log": {"servers": 2},
    "three servers before a replicated log": {"servers": 3},
    "a log that leaves repeats of records to its readers": {"filters_records": False},
    "readers with little room, and trims at once": {"unknown_max": 1, "trim_after_ms": 0},
    "one server that answers its query before it has synced": {"servers": 1, "early": True},
}


def drawn(seed: int, **fixed: Any) -> LogSetup:
    return replace(LogSetup.draw(random.Random(seed)), **fixed)


@pytest.mark.parametrize("world", WORLDS)
def test_every_invariant_holds_whatever_goes_wrong(world: str, log_seeds: int) -> None:
    first = list(WORLDS).index(world) * log_seeds  # no two kinds have a seed in common
    seeds = range(first, first + log_seeds)
    outcomes = [simulate_log(seed, drawn(seed, **WORLDS[world])) for seed in seeds]
    # Things did go wrong, and everybody came to an end all the same.
    assert sum(outcome.faults for outcome in outcomes) > 4 * len(outcomes)
    assert sum(outcome.runs for outcome in outcomes) > 2 * len(outcomes)
    assert sum(outcome.batches for outcome in outcomes) > 2 * len(outcomes)
    assert sum(outcome.trims for outcome in outcomes) > len(outcomes)
    assert sum(outcome.changes for outcome in outcomes) > len(outcomes)
    if WORLDS[world].get("servers", 1) > 1:
        assert sum(outcome.loads for outcome in outcomes) > len(outcomes) / 40


def test_what_was_answered_and_lost_is_run_again(log_seeds: int) -> None:
    outcomes = [simulate_log(seed, drawn(seed, **CRASHES)) for seed in range(log_seeds)]
    assert sum(outcome.lost for outcome in outcomes) > len(outcomes) / 20
    assert sum(outcome.batches for outcome in outcomes) > 4 * len(outcomes)


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str) -> None:
    planted = PLANTED[bug]
    said = []
    for seed in range(planted.seeds):
        try:
            simulate_log(seed, drawn(seed, **planted.where), parts=planted.parts)
        except Violation as violation:
            said.append(str(violation).partition("\n")[0])
            if planted.sentence in said[-1]:
                return
    pytest.fail(f"not found in {planted.seeds} worlds; they said {said[:3]}")


def violation_of(bug: str) -> str:
    planted = PLANTED[bug]
    for seed in range(planted.seeds):
        try:
            simulate_log(seed, parts=planted.parts)
        except Violation as violation:
            return str(violation)
    pytest.fail(f"no violation in {planted.seeds} worlds")


def test_the_same_seed_tells_the_same_story() -> None:
    assert simulate_log(11) == simulate_log(11)
    assert violation_of("filter off") == violation_of("filter off")


def test_a_violation_says_how_to_see_it_again() -> None:
    said = violation_of("offsets cut anew")
    call = said.partition("simulate_log; ")[2].partition('"\n')[0]
    outcome = eval(call, {"LogSetup": LogSetup, "simulate_log": simulate_log})
    assert isinstance(outcome, LogOutcome), "the same world is whole without the bug"
    assert f"simulate_log({outcome.seed}, {outcome.setup})" == call


def test_without_faults_a_query_runs_once_to_its_end() -> None:
    for seed in range(20):
        outcome = simulate_log(seed, drawn(seed, fault_rate=0.0, lost=0.0, repeated=0.0))
        assert (outcome.runs, outcome.faults) == (1, 0)
