"""Orders of eviction: each gives up the key that its rule names, and never one that is gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadCall
from penstock.prefetch.cache_policies import (
    ORDERS,
    ClockOrder,
    EvictionOrder,
    LruOrder,
    TimestampOrder,
    order_of,
)


def filled(order: EvictionOrder, *keys: str) -> EvictionOrder:
    for at_ms, key in enumerate(keys):
        order.add(key, at_ms)
    return order


def drained(order: EvictionOrder) -> list[object]:
    victims = []
    while (victim := order.pop_victim()) is not None:
        victims.append(victim)
    return victims


def test_the_oldest_timestamp_goes_first_whenever_it_came() -> None:
    order = TimestampOrder()
    for key, at_ms in (("late", 30), ("early", 10), ("middle", 20)):
        order.add(key, at_ms)
    assert drained(order) == ["early", "middle", "late"]


def test_a_hint_from_the_future_outlives_a_later_read_of_an_older_row() -> None:
    order = filled(TimestampOrder(), "a", "b")
    order.renew("a", 100)
    order.renew("b", 50)
    order.renew("a", 40)  # an earlier timestamp takes nothing back
    assert drained(order) == ["b", "a"]


def test_last_use_counts_for_lru_whatever_the_timestamp() -> None:
    order = filled(LruOrder(), "a", "b", "c")
    order.renew("a", 0)
    assert drained(order) == ["b", "c", "a"]


def test_the_clock_spares_a_renewed_key_once() -> None:
    order = filled(ClockOrder(), "a", "b", "c")
    order.renew("a", 0)
    order.renew("b", 0)
    assert order.pop_victim() == "c"
    assert drained(order) == ["a", "b"]


@pytest.mark.parametrize("policy", ORDERS)
def test_a_key_that_came_back_is_given_up_by_its_new_timestamp(policy: str) -> None:
    order = filled(order_of(policy), "a", "b")
    order.remove("a")
    order.add("a", 5)
    assert drained(order) == ["b", "a"]


@pytest.mark.parametrize("policy", ORDERS)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["add", "renew", "remove", "pop"]),
            st.integers(0, 6),
            st.integers(0, 50),
        ),
        max_size=200,
    )
)
def test_an_order_holds_each_key_once_and_forgets_none(
    policy: str, steps: list[tuple[str, int, int]]
) -> None:
    order = order_of(policy)
    times_ms: dict[object, int] = {}
    for step, key, at_ms in steps:
        if step == "pop":
            victim = order.pop_victim()
            assert (victim in times_ms) == bool(times_ms)
            if policy == "timestamp" and victim is not None:
                assert times_ms[victim] == min(times_ms.values())
            times_ms.pop(victim, None)
        elif key not in times_ms:
            order.add(key, at_ms)
            times_ms[key] = at_ms
        elif step == "remove":
            order.remove(key)
            del times_ms[key]
        else:
            order.renew(key, at_ms)
            times_ms[key] = max(times_ms[key], at_ms)
    assert set(drained(order)) == set(times_ms)


def test_the_order_by_timestamp_does_not_grow_with_keys_that_come_and_go() -> None:
    order = TimestampOrder()
    for at_ms in range(10_000):
        order.add("same", at_ms)
        order.remove("same")
    assert len(order._heap) < 100


def test_a_policy_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(BadCall, match=r"there is timestamp, lru, clock, off"):
        order_of("fifo")
