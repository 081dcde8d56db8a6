"""Whose tasks run first: the order by itself, and that of the vectors."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.schedule.order import (
    POLICIES,
    UNKNOWN_DEADLINE_MS,
    WEIGHT_MIN,
    Policy,
    TaskSet,
    in_order,
    owners,
    weights_of,
)
from support.schedule_vectors import FILE, NOON, SCENES, random_scene, task_set, vectors


def test_the_vectors_are_what_their_program_writes() -> None:
    assert json.loads(FILE.read_text(encoding="utf-8")) == vectors()


def queries_in_order(policy: Policy, scene: str) -> list[str | None]:
    return [each.query for each in in_order(policy, SCENES[scene])]


def test_the_earliest_deadline_goes_first_and_fifo_does_not_look_at_it() -> None:
    scene = "the later job has the earlier deadline"
    assert queries_in_order("edf", scene) == ["b", "a"]
    assert queries_in_order("fifo", scene) == ["a", "b"]
    assert queries_in_order("edf", "a deadline that is over comes first") == ["b", "a"]


def test_a_task_set_without_a_deadline_is_not_put_off_for_ever() -> None:
    scene = "no deadline: due ten seconds after it was seen"
    assert queries_in_order("edf", scene) == ["c", "a", "b"]
    waiting = task_set("a", 0, None)
    later = task_set("b", 1, UNKNOWN_DEADLINE_MS + 1)
    assert in_order("edf", [later, waiting]) == [waiting, later]


def test_fair_gives_the_next_core_to_the_query_with_the_fewest() -> None:
    scene = "cores of all task sets of a query count"
    assert queries_in_order("fair", scene) == ["b", "a", "a"]


def test_rdas_shares_six_cores_as_the_paper_does() -> None:
    """Each has its share, so the next core goes to the most urgent; with two cores each, the one
    with the least time left is furthest below its share."""
    weights = weights_of(owners(SCENES["three queries share six cores: one, two, three"]))
    total = sum(weights.values())
    assert {name: round(6 * weight / total, 6) for name, weight in weights.items()} == {
        "a": 1, "b": 2, "c": 3,
    }  # fmt: skip
    assert queries_in_order("rdas", "who has least of its share comes first") == ["c", "b", "a"]


def test_rdas_gives_half_the_cores_to_half_the_weight() -> None:
    assert queries_in_order("rdas", "a query of half the weight gets half the cores") == ["a", "b"]


def run_on_cores(policy: Policy, waiting: dict[str, int], due_ms: dict[str, int]) -> dict[str, int]:
    """Cores of each query after twelve have been given out one by one, none having ended."""
    running = dict.fromkeys(waiting, 0)
    for _ in range(12):
        task_sets = [
            task_set(query, job, due_ms[query], running=running[query])
            for job, query in enumerate(waiting)
        ]
        for first in in_order(policy, task_sets):
            assert first.query is not None
            if running[first.query] < waiting[first.query]:
                running[first.query] += 1
                break
    return running


@pytest.mark.parametrize(
    ("policy", "cores"),
    [
        ("edf", {"a": 0, "b": 2, "c": 10}),
        ("rdas", {"a": 2, "b": 4, "c": 6}),
        ("fair", {"a": 4, "b": 4, "c": 4}),
        ("fifo", {"a": 12, "b": 0, "c": 0}),
    ],
)
def test_twelve_cores_that_free_one_by_one_are_divided(
    policy: Policy, cores: dict[str, int]
) -> None:
    waiting = {"a": 20, "b": 20, "c": 10}
    assert run_on_cores(policy, waiting, {"a": 3000, "b": 2000, "c": 1000}) == cores


@given(st.integers(0, 10_000), st.sampled_from(POLICIES))
def test_an_order_has_every_task_set_once_and_does_not_depend_on_how_they_came(
    seed: int, policy: Policy
) -> None:
    task_sets = random_scene(seed)
    order = in_order(policy, task_sets)
    assert sorted(each.key for each in order) == sorted(each.key for each in task_sets)
    assert in_order(policy, task_sets[::-1]) == order


@given(st.integers(0, 10_000), st.integers(-(10**9), 10**9))
def test_a_clock_that_is_wrong_by_the_same_for_all_changes_no_order(
    seed: int, error_ms: int
) -> None:
    task_sets = random_scene(seed)
    wrong = [_later(each, error_ms) for each in task_sets]
    for policy in POLICIES:
        keys = [each.key for each in in_order(policy, task_sets)]
        assert [each.key for each in in_order(policy, wrong)] == keys


def _later(each: TaskSet, error_ms: int) -> TaskSet:
    due_ms = None if each.deadline_at_ms is None else each.deadline_at_ms - NOON + error_ms
    return task_set(
        each.query,
        each.job,
        due_ms,
        stage=each.stage,
        running=each.running,
        weight=each.weight,
        seen_ms=each.seen_at_ms - NOON + error_ms,
    )


@given(st.integers(0, 10_000))
def test_every_weight_is_above_nothing_and_at_most_one(seed: int) -> None:
    task_sets = random_scene(seed)
    weights = weights_of(owners(task_sets))
    for each in task_sets:
        own = owners(task_sets)[each.owner].weight
        assert WEIGHT_MIN * own <= weights[each.owner] <= 1.0
    assert weights_of({}) == {}
