"""Which entry leaves the cache next: the orders by themselves, and those of the vectors."""

from __future__ import annotations

import json

import pytest

from penstock.prefetch.order import POLICIES, Policy
from support.cache_vectors import FILE, SCENES, random_steps, vectors, victims


def test_the_vectors_are_what_their_program_writes() -> None:
    assert json.loads(FILE.read_text(encoding="utf-8")) == json.loads(json.dumps(vectors()))


def test_the_oldest_time_leaves_first_whenever_it_was_read() -> None:
    assert victims("timestamp", SCENES["what is hinted for later stays"]) == [
        "read", "also read", "hinted",
    ]  # fmt: skip
    assert victims("timestamp", SCENES["the latest time counts"]) == ["b", "a"]


def test_lru_looks_at_the_turn_and_not_at_the_time() -> None:
    assert victims("lru", SCENES["what is hinted for later stays"])[0] == "hinted"
    assert victims("lru", SCENES["a read renews"]) == ["b", "a"]


def test_the_hand_passes_by_what_was_read_since() -> None:
    assert victims("clock", SCENES["a read renews"]) == ["a", "b"]
    steps = [("add", key, 0) for key in "abc"]
    evict = ("evict", "", 0)
    assert victims("clock", [*steps, evict, ("renew", "b", 0), evict, evict]) == ["a", "c", "b"]


@pytest.mark.parametrize("policy", POLICIES)
def test_all_that_is_in_an_order_leaves_it_once(policy: Policy) -> None:
    for seed in range(20):
        steps = random_steps(seed)
        added = {key for act, key, _ in steps if act == "add"}
        removed = {key for act, key, _ in steps if act == "remove"}
        evicted = victims(policy, [step for step in steps if step[0] != "victim"])
        assert sorted(map(str, evicted)) == sorted(added - removed)
