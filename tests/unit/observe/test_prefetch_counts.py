"""Counts of prefetching, as the plug-in tells them."""

from __future__ import annotations

import json

import msgspec
import pytest

from penstock.observe.prefetch_counts import QueryPrefetch, weighted_percentile

DRIVER_COUNTS = {
    "shuffle_bytes": 20_000,
    "relayed": {"passed_on": 12, "arrived": 11, "dropped": 3},
    "operators": [
        {
            "operator": 0,
            "name": "StateStoreRestore",
            "candidates": ["A", "B", "C", "D"],
            "left_out": [],
            "hits": 75,
            "misses": 25,
            "waited": 3,
            "used": {"A": 40, "D": 8},
            "unused": {"A": 2},
            "hinted": {"A": 60, "D": 100},
            "suppressed": 7,
            "dropped": 1,
            "bytes": 4_096,
            "evictions": 5,
            "access_us": {"90": 98, "1100": 1, "9000": 1},
            "slack_us": [{"A": 80_000, "D": 0}, {"A": 120_000, "D": 100}],
            "active": ["B", "D"],
            "discarded": ["A"],
            "switches": [{"batch": 4, "active": ["B", "D"], "reason": "A drops rows"}],
            "hint_bytes": 500,
            "late": 4,
        }
    ],
}


@pytest.fixture
def prefetch() -> QueryPrefetch:
    return msgspec.json.decode(json.dumps(DRIVER_COUNTS), type=QueryPrefetch)


def test_ratios_are_over_what_was_read_and_what_is_judged(prefetch: QueryPrefetch) -> None:
    (operator,) = prefetch.operators
    assert operator.hit_ratio == 0.75
    assert operator.unused_ratio == pytest.approx(2 / 50)
    assert prefetch.hint_share == pytest.approx(500 / 20_000)


def test_hints_for_other_executors_are_counted_where_they_pass(prefetch: QueryPrefetch) -> None:
    relayed = prefetch.relayed
    assert (relayed.passed_on, relayed.arrived, relayed.dropped) == (12, 11, 3)


def test_percentiles_of_access_and_slack_are_in_milliseconds(prefetch: QueryPrefetch) -> None:
    (operator,) = prefetch.operators
    assert operator.access_ms(50) == 0.09
    assert operator.access_ms(99) == 1.1
    assert operator.access_ms(99.9) == 9.0
    assert operator.slack_ms("A", 1) == 80.0
    assert operator.slack_ms("A", 99) == 120.0
    assert operator.slack_ms("C", 1) is None


def test_a_query_without_counts_has_no_ratio() -> None:
    nothing = msgspec.json.decode('{"shuffle_bytes": 0, "operators": []}', type=QueryPrefetch)
    assert nothing.hint_share is None
    assert weighted_percentile({}, 99) is None
