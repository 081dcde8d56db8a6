"""Task sets and the order they are offered cores in, for the Python order and its Scala twin.

Run this file to write `tests/vectors/schedule.json` from the Python form.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock.schedule.order import POLICIES, TaskSet, in_order, owners, weights_of

FILE = Path(__file__).parents[1] / "vectors" / "schedule.json"
NOON = 1_700_000_000_000
"""Some time, in milliseconds since 1970: larger than an Int of Java."""


def task_set(
    query: str | None,
    job: int,
    due_ms: int | None = None,
    *,
    stage: int = 0,
    running: int = 0,
    weight: float = 1.0,
    seen_ms: int = 0,
) -> TaskSet:
    """A task set named by its query, job and stage; times are counted from NOON."""
    deadline_at_ms = None if due_ms is None else NOON + due_ms
    return TaskSet(
        f"{query} {job}.{stage}", job, stage, NOON + seen_ms, running, query, deadline_at_ms, weight
    )


SCENES: dict[str, list[TaskSet]] = {
    "nothing waits": [],
    "one task set": [task_set("a", 0, 500)],
    "the later job has the earlier deadline": [task_set("a", 0, 900), task_set("b", 1, 400)],
    "a deadline that is over comes first": [task_set("a", 0, 300), task_set("b", 1, -200)],
    "equal deadlines go by job": [task_set("b", 1, 500), task_set("a", 0, 500)],
    "two stages of a job go in their order": [
        task_set("a", 3, 500, stage=7), task_set("a", 3, 500, stage=6),
    ],
    "a job that runs all cores gives way to an earlier deadline": [
        task_set("a", 0, 900, running=2), task_set("b", 1, 400),
    ],
    "no deadline: due ten seconds after it was seen": [
        task_set("a", 0, None, seen_ms=-9_800), task_set("b", 1, 300), task_set("c", 2, 100),
    ],
    "no query: a query of its own": [
        task_set(None, 0, 500, running=1), task_set(None, 1, 700), task_set("a", 2, 600, running=1),
    ],
    "three queries share six cores: one, two, three": [
        task_set("a", 0, 3000, running=1), task_set("b", 1, 2000, running=2),
        task_set("c", 2, 1000, running=3),
    ],
    "who has least of its share comes first": [
        task_set("a", 0, 3000, running=2), task_set("b", 1, 2000, running=2),
        task_set("c", 2, 1000, running=2),
    ],
    "cores of all task sets of a query count": [
        task_set("a", 0, 1000, running=2), task_set("a", 1, 1000),
        task_set("b", 2, 1000, running=1),
    ],
    "a query of half the weight gets half the cores": [
        task_set("a", 0, 1000, running=2), task_set("b", 1, 1000, running=2, weight=0.5),
    ],
    "the least weight of its task sets is that of a query": [
        task_set("a", 0, 1000, running=1, weight=0.25), task_set("a", 1, 1000, weight=0.5),
        task_set("b", 2, 2000, running=1),
    ],
}  # fmt: skip


def described(name: str, task_sets: Sequence[TaskSet]) -> dict[str, Any]:
    """A scene as both forms must see it: the order under each policy, and the shares."""
    return {
        "name": name,
        "task_sets": [msgspec.to_builtins(each) for each in task_sets],
        "order": {
            policy: [each.key for each in in_order(policy, task_sets)] for policy in POLICIES
        },
        "weights": weights_of(owners(task_sets)),
    }


def random_scene(seed: int) -> list[TaskSet]:
    chance = random.Random(seed)
    return [
        task_set(
            chance.choice(["a", "b", "c", "d", None]),
            job,
            chance.choice([None, chance.randint(-2_000, 5_000)]),
            stage=chance.randint(0, 3),
            running=chance.choice([0, 0, 1, 2, 5]),
            weight=chance.choice([1.0, 1.0, 0.5, 0.1]),
            seen_ms=chance.randint(-15_000, 0),
        )
        for job in chance.sample(range(20), chance.randint(2, 8))
    ]


def vectors() -> list[dict[str, Any]]:
    named = [described(name, task_sets) for name, task_sets in SCENES.items()]
    return named + [described(f"by chance, {seed}", random_scene(seed)) for seed in range(60)]


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(each) for each in vectors())
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
