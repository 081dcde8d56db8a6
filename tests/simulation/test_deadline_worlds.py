"""Deadlines in a thousand seeded worlds, decided as by server and pool, and with bugs planted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.simulate.engine import Parts, simulate
from simulation.deadlines.checks import Violation, checked
from simulation.deadlines.worlds import MAKERS, Maker
from simulation.planted_deadline_bugs import PLANTED

SEEDS_TO_FIND_A_BUG = 40


def test_no_wait_is_past_its_bound_and_nobody_starves(deadline_seeds: range) -> None:
    for seed in deadline_seeds:
        checked("any", seed)


def test_edf_misses_nothing_where_it_is_optimal(deadline_seeds: range) -> None:
    """One core, all batches there at once, deadlines that some order meets: EDF meets them."""
    for seed in deadline_seeds:
        checked("at once", seed)


def test_edf_misses_less_than_fifo_in_all_where_it_is_optimal(deadline_seeds: range) -> None:
    assert_edf_misses_less("at once", deadline_seeds)


def test_edf_misses_less_than_fifo_in_all_where_it_is_crowded(crowded_seeds: range) -> None:
    assert_edf_misses_less("crowded", crowded_seeds)


def assert_edf_misses_less(maker: Maker, seeds: range) -> None:
    missed = dict.fromkeys(("edf", "fifo"), 0.0)
    for seed in seeds:
        world = MAKERS[maker](seed)
        for order in missed:
            missed[order] += simulate(replace(world, order=order)).miss_ratio
    assert missed["edf"] < missed["fifo"]


def test_deadlines_that_can_be_kept_are_kept(few_seeds: range) -> None:
    missed = [checked("calm", seed).miss_ratio for seed in few_seeds]
    assert sum(missed) / len(missed) < 0.01


def test_a_query_beside_one_in_a_hurry_does_not_stay_at_small_batches() -> None:
    for seed in range(8):
        checked("beside", seed)


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found_in_a_world_that_passes_without_it(bug: str) -> None:
    planted = PLANTED[bug]
    for seed in range(SEEDS_TO_FIND_A_BUG):
        with_bug = violation_in(planted.maker, seed, planted.parts)
        if planted.report in with_bug and not violation_in(planted.maker, seed):
            return
    pytest.fail(f"not found in {SEEDS_TO_FIND_A_BUG} worlds that pass without the bug")


def violation_in(maker: Maker, seed: int, parts: Parts | None = None) -> str:
    """The sentence of the promise that a world breaks; empty where it keeps all."""
    try:
        checked(maker, seed, parts)
    except Violation as violation:
        return str(violation)
    return ""


def test_the_same_seed_tells_the_same_story() -> None:
    for maker in MAKERS:
        first, second = (simulate(MAKERS[maker](7)) for _ in range(2))
        assert first.batches == second.batches


def test_a_violation_says_how_to_see_it_again() -> None:
    sentence = str(Violation("q1 starves", "calm", 17))
    call = sentence.partition("import *; ")[2].rpartition('"')[0]
    assert eval(call, {"checked": checked}).is_everything_visible
