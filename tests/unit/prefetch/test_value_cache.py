"""The cache of looked-up values: budget, absences, life time, pins, against a plain map."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.prefetch.cache_policies import POLICIES
from penstock.prefetch.value_cache import PIN_BATCHES, ValueCache, size_of

ROOMY = 1 << 20
ENTRY = 600
"""More than an entry of these tests takes, less than twice as much."""


def small(entries: int, policy: str = "timestamp") -> ValueCache:
    return ValueCache(policy, entries * ENTRY)


def put(cache: ValueCache, keys: Sequence[str], *, is_hint: bool = False) -> list[bool]:
    return [cache.put(key, (f"of {key}",), at, 0.0, is_hint=is_hint) for at, key in enumerate(keys)]


def test_a_value_and_an_absence_are_both_kept() -> None:
    cache = ValueCache("timestamp", ROOMY)
    cache.put("a", ("x",), 0, 0.0)
    cache.put("gone", None, 0, 0.0)
    present, absent = cache.read("a", 1, 0.0), cache.read("gone", 1, 0.0)
    assert present is not None
    assert absent is not None
    assert (present.row, absent.row) == (("x",), None)
    assert cache.read("unknown", 1, 0.0) is None


@pytest.mark.parametrize("policy", ["timestamp", "lru", "clock"])
def test_the_budget_is_kept_by_giving_up_the_first_in_order(policy: str) -> None:
    cache = small(2, policy)
    put(cache, "abcd")
    cache.check()
    assert "d" in cache
    assert "a" not in cache
    assert cache.counts.evictions == 4 - len(cache)


def test_off_keeps_nothing() -> None:
    cache = ValueCache("off", ROOMY)
    assert put(cache, "a") == [False]
    assert (len(cache), cache.has_room_for_hints) == (0, False)


def test_a_value_larger_than_the_budget_is_not_kept_and_costs_no_other() -> None:
    cache = small(2)
    put(cache, "a")
    assert not cache.put("b", ("x" * 10_000,), 1, 0.0)
    assert "a" in cache


def test_a_value_ends_with_its_time_to_live_counted_from_the_request() -> None:
    cache = ValueCache("lru", ROOMY, ttl_s=10.0)
    cache.put("a", ("old",), 0, 5.0)
    assert cache.read("a", 0, 14.9) is not None
    assert cache.read("a", 0, 15.0) is None
    assert not cache.expect("a", 0, 15.0)
    assert (len(cache), cache.counts.expired) == (0, 1)


def test_what_is_hinted_is_not_given_up_for_reads_or_hints_while_anything_else_is_there() -> None:
    cache = small(4)
    put(cache, "h", is_hint=True)
    put(cache, "abcdef")
    assert "h" in cache
    cache.check()


def test_hints_beyond_half_of_the_budget_are_refused() -> None:
    cache = small(4)
    taken = put(cache, "abcdefgh", is_hint=True)
    assert True in taken
    assert taken[-1] is False
    assert not cache.has_room_for_hints
    cache.check()


def test_a_read_that_finds_only_pins_gives_up_the_first_of_them() -> None:
    cache = ValueCache("timestamp", 2 * ENTRY)
    put(cache, "ab", is_hint=True)
    cache.put("large", ("x" * 600,), 9, 0.0)
    assert "large" in cache
    assert cache.counts.prefetched_unused >= 1
    cache.check()


def test_a_hinted_value_counts_as_used_at_its_first_read_only() -> None:
    cache = ValueCache("timestamp", ROOMY)
    put(cache, "a", is_hint=True)
    cache.read("a", 1, 0.0)
    cache.read("a", 2, 0.0)
    assert (cache.counts.prefetched_used, cache.counts.prefetched_unused) == (1, 0)


def test_a_hinted_value_that_no_batch_read_counts_as_unused_and_stays_as_any_other() -> None:
    cache = ValueCache("timestamp", ROOMY)
    put(cache, "a", is_hint=True)
    for _ in range(PIN_BATCHES - 1):
        cache.begin_batch()
    assert cache.counts.prefetched_unused == 0
    cache.begin_batch()
    assert cache.counts.prefetched_unused == 1
    assert cache.read("a", 1, 0.0) is not None
    assert cache.counts.prefetched_used == 0
    cache.check()


def test_pins_of_rows_that_are_past_end_when_their_batch_is_over() -> None:
    #   pieces   1: a b    2: c d    3: e
    #   batch 1  reads c, so 1 is past when it is over; d is maybe, and e is not
    cache = ValueCache("timestamp", ROOMY)
    for piece, keys in enumerate(("ab", "cd", "e"), 1):
        for key in keys:
            cache.put(key, ("x",), 0, 0.0, is_hint=True, piece=piece)
    cache.begin_batch()
    cache.read("c", 1, 0.0)
    assert cache.counts.prefetched_unused == 0, "another task of the batch may read them"
    cache.begin_batch()
    assert cache.counts.prefetched_unused == 2
    for key in "abde":
        cache.read(key, 2, 0.0)
    assert cache.counts.prefetched_used == 3, "c, d and e"
    cache.check()


def test_counts_are_taken_once() -> None:
    cache = small(1)
    put(cache, "ab")
    assert cache.take_counts().evictions == 1
    assert cache.take_counts().evictions == 0


def test_a_size_holds_what_is_inside() -> None:
    assert size_of(("x" * 1_000, ["y" * 1_000, {"k": "z" * 1_000}])) > 3_000


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "hint", "read", "expect", "batch", "later"]),
        st.sampled_from("abcdefgh"),
        st.integers(0, 20),
    ),
    max_size=300,
)


@pytest.mark.parametrize("policy", POLICIES)
@given(steps=STEPS)
def test_the_cache_gives_the_last_value_put_or_nothing(
    policy: str, steps: list[tuple[str, str, int]]
) -> None:
    cache, newest, now_s = ValueCache(policy, 3 * ENTRY, ttl_s=2.0), dict[str, int](), 0.0
    for number, (step, key, at_ms) in enumerate(steps):
        if step in ("put", "hint"):
            is_hint = step == "hint"
            if cache.put(key, (number,), at_ms, now_s, is_hint=is_hint, piece=number):
                newest[key] = number
            else:
                assert key not in cache
        elif step == "read":
            entry = cache.read(key, at_ms, now_s)
            assert entry is None or entry.row == (newest[key],)
        elif step == "expect":
            assert not cache.expect(key, at_ms, now_s) or key in newest
        elif step == "batch":
            cache.begin_batch()
        else:
            now_s += 1.0
        cache.check()
