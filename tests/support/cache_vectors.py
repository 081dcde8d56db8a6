"""Questions to the orders of eviction and to the sketch of hot keys, for Python and its Scala twin.

Run this file to write `tests/vectors/cache.json` from the Python form.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from penstock.prefetch.order import POLICIES, Policy, order_of
from penstock.prefetch.sketch import KEYS_TO_HALVE, CountMinSketch, HotBatch, tuned

FILE = Path(__file__).parents[1] / "vectors" / "cache.json"
Step = tuple[str, str, int]

SCENES: dict[str, list[Step]] = {
    "nothing is cached": [("evict", "", 0)],
    "a read renews": [
        ("add", "a", 1), ("add", "b", 2), ("renew", "a", 3), ("evict", "", 0), ("evict", "", 0),
    ],
    "the latest time counts": [
        ("add", "a", 9), ("add", "b", 5), ("renew", "a", 3), ("evict", "", 0), ("evict", "", 0),
    ],
    "of one time, the one renewed longest ago": [
        ("add", "a", 5), ("add", "b", 5), ("renew", "a", 5), ("evict", "", 0),
    ],
    "what is hinted for later stays": [
        ("add", "hinted", 90), ("add", "read", 10), ("add", "also read", 20),
        ("evict", "", 0), ("evict", "", 0), ("evict", "", 0),
    ],
    "one that was pinned comes back": [
        ("add", "a", 1), ("add", "b", 2), ("remove", "a", 0), ("evict", "", 0), ("add", "a", 1),
        ("add", "c", 3), ("evict", "", 0),
    ],
}  # fmt: skip
# Groups of keys: `times` keys, of `spread` different ones, all with the same beginning.
SKETCHED: dict[str, list[tuple[str, int, int]]] = {
    "hot after the threshold": [("a", 70, 1)],
    "many keys, none hot": [("n", 5000, 5000)],
    "hot among many": [("a", 60, 1), ("n", 5000, 5000), ("a", 10, 1)],
    "forgotten by halves": [("a", 300, 1), ("n", KEYS_TO_HALVE, KEYS_TO_HALVE), ("a", 2, 1)],
    "counters stop": [("a", 600, 1), ("n", KEYS_TO_HALVE, 60_000), ("a", 1, 1), ("", 100, 3)],
}
THRESHOLDS = (
    *((64, 64, HotBatch(50, 50, 9)), (64, 64, HotBatch(1000, 30, 9))),
    *((64, 64, HotBatch(1000, 30, 0)), (200, 64, HotBatch(1000, 500, 1))),
    *((255, 64, HotBatch(1000, 0, 5)), (65, 64, HotBatch(1000, 1, 5))),
    *((64, 64, HotBatch(1000, 0, 5)), (128, 64, HotBatch(1000, 10, 5)), (1, 1, HotBatch(0, 0, 0))),
)


def random_steps(seed: int, length: int = 120) -> list[Step]:
    """Steps in which an entry is added once, renewed or removed only while it is in."""
    chance = random.Random(seed)
    inside: list[str] = []
    steps: list[Step] = []
    for number in range(length):
        act = chance.choice(("add", "add", "renew", "renew", "remove"))
        at_ms = chance.randrange(40)
        if act == "add":
            inside.append(f"k{number}")
            steps.append((act, inside[-1], at_ms))
        elif inside:
            key = chance.choice(inside)
            steps.append((act, key, at_ms))
            if act == "remove":
                inside.remove(key)
        if chance.random() < 0.2:
            steps.append(("victim", "", 0))
    return [*steps, *[("evict", "", 0)] * len(inside)]


def victims(policy: Policy, steps: list[Step]) -> list[str | None]:
    """The answers to every `victim` and `evict` of some steps; the latter removes it too."""
    order = order_of(policy)
    answers = []
    for act, key, at_ms in steps:
        if act == "add":
            order.add(key, at_ms)
        elif act == "renew":
            order.renew(key, at_ms)
        elif act == "remove":
            order.remove(key)
        else:
            answers.append(order.victim())
            if act == "evict" and answers[-1] is not None:
                order.remove(answers[-1])
    return answers


def hot_counts(threshold: int, groups: list[tuple[str, int, int]]) -> list[int]:
    """How many keys of each group were hot."""
    sketch = CountMinSketch(threshold)
    return [
        sum(sketch.is_hot(f"{key}{number % spread}".encode()) for number in range(times))
        for key, times, spread in groups
    ]


def vectors() -> dict[str, Any]:
    """All questions with the answers of the Python form."""
    scenes = SCENES | {f"random {seed}": random_steps(seed) for seed in range(8)}
    return {
        "eviction": [
            {
                "name": name,
                "steps": [list(step) for step in steps],
                "victims": {policy: victims(policy, steps) for policy in POLICIES},
            }
            for name, steps in scenes.items()
        ],
        "sketch": [
            {
                "name": name,
                "threshold": 64,
                "groups": [list(group) for group in groups],
                "hot": hot_counts(64, groups),
            }
            for name, groups in SKETCHED.items()
        ],
        "threshold": [
            {
                "threshold": threshold,
                "start": start,
                "reads": batch.reads,
                "misses": batch.misses,
                "suppressed": batch.suppressed,
                "tuned": tuned(threshold, start, batch),
            }
            for threshold, start, batch in THRESHOLDS
        ],
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(vectors(), indent=None, separators=(",", ":")) + "\n", "utf-8")
