"""Hot keys: what is counted, what is forgotten, and how the threshold moves."""

from __future__ import annotations

import pytest

from penstock.prefetch.sketch import (
    COUNT_MAX,
    ROWS,
    WIDTH,
    CountMinSketch,
    HotBatch,
    murmur3,
    places,
    tuned,
)
from support.cache_vectors import SKETCHED, hot_counts


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        (b"", 0, 0),
        (b"", 1, 0x514E28B7),
        (b"test", 0, 0xBA6BD213),
        (b"Hello, world!", 0, 0xC0363E43),
    ],
)
def test_the_hash_is_the_published_one(data: bytes, seed: int, expected: int) -> None:
    assert murmur3(data, seed) == expected


def test_a_sketch_takes_forty_kilobytes_and_each_row_has_a_place_for_a_key() -> None:
    assert ROWS * WIDTH == 40_960
    assert [place // WIDTH for place in places(b"key")] == list(range(ROWS))


def test_a_key_is_hot_once_it_came_more_often_than_the_threshold() -> None:
    sketch = CountMinSketch(3)
    assert [sketch.is_hot(b"a") for _ in range(5)] == [False, False, False, True, True]
    assert not sketch.is_hot(b"b")


def test_counters_stop_and_are_halved() -> None:
    assert hot_counts(64, SKETCHED["many keys, none hot"]) == [0]
    assert hot_counts(COUNT_MAX, [("a", 1000, 1)]) == [0]
    halved = CountMinSketch(200)
    assert [halved.is_hot(b"a") for _ in range(255)][-1]
    for number in range(65_536 - 255):
        halved.is_hot(f"n{number}".encode())
    assert not halved.is_hot(b"a")


def test_the_threshold_rises_with_misses_and_comes_back_without() -> None:
    missing, fine = HotBatch(1000, 100, 10), HotBatch(1000, 0, 10)
    raised = tuned(64, 64, missing)
    assert raised == 128
    assert tuned(raised, 64, fine) == 112
    assert tuned(64, 64, fine) == 64
    assert tuned(200, 64, missing) == COUNT_MAX
    assert tuned(64, 64, HotBatch(1000, 100, 0)) == 64
    assert tuned(64, 64, HotBatch(20, 20, 5)) == 64
