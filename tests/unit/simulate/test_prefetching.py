"""Prefetching behind a static join that begins to drop rows, before reads get quicker.

batch   0          20                 40      44
        | slow reads, A ahead of the join
                   | the join drops rows: A discarded, B
                                      | quick reads
                                              | C is early enough
"""

from __future__ import annotations

import pytest

from penstock.prefetch.controller import ControlTerms
from penstock.simulate.prefetching import BatchOutcome, StaticJoin, simulate_join

WORLD = StaticJoin(map_us=60_000)


@pytest.fixture(scope="module")
def outcomes() -> list[BatchOutcome]:
    return simulate_join(WORLD)


def misses(outcomes: list[BatchOutcome]) -> float:
    """The share of reads that missed."""
    return sum(each.misses for each in outcomes) / sum(each.reads for each in outcomes)


def test_nothing_hints_in_the_first_batch_and_then_the_first_candidate_does(
    outcomes: list[BatchOutcome],
) -> None:
    assert outcomes[0].active == ()
    assert outcomes[0].misses > 0
    assert outcomes[1].active == ("A", "D")


def test_a_join_that_drops_rows_moves_the_choice_behind_it_in_the_next_batch(
    outcomes: list[BatchOutcome],
) -> None:
    dropping = outcomes[WORLD.drops_from]
    assert dropping.unused > 0
    assert dropping.reason is not None
    assert "discarded for good" in dropping.reason
    assert all("A" not in each.active for each in outcomes[WORLD.drops_from + 1 :])
    assert sum(each.unused for each in outcomes[WORLD.drops_from + 1 :]) == 0


def test_quicker_reads_move_the_choice_to_a_later_place_after_five_batches(
    outcomes: list[BatchOutcome],
) -> None:
    before, after = outcomes[WORLD.quick_from], outcomes[WORLD.quick_from + 5]
    assert (before.active[0], after.active[0]) == ("B", "C")
    assert {each.active for each in outcomes[WORLD.quick_from : WORLD.quick_from + 5]} == {
        ("B", "D")
    }
    assert {each.active for each in outcomes[WORLD.quick_from + 5 :]} == {("C", "D")}


def test_reads_hardly_miss_once_somebody_hints(outcomes: list[BatchOutcome]) -> None:
    assert misses(outcomes[:1]) > 0.9
    assert misses(outcomes[1 : WORLD.drops_from]) < 0.01
    assert misses(outcomes[WORLD.drops_from + 1 : WORLD.quick_from]) < 0.05
    assert misses(outcomes[WORLD.quick_from + 5 :]) < 0.01


def test_a_share_of_unused_prefetches_that_is_allowed_keeps_the_first_place() -> None:
    world = StaticJoin(map_us=60_000, terms=ControlTerms(unused_percent_max=50))
    allowed = simulate_join(world)
    assert all("discarded" not in (each.reason or "") for each in allowed)
    assert sum(each.unused for each in allowed) > 0
