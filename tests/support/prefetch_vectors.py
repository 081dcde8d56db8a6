"""Batches told to the controller of prefetching and its answers, for Python and its Scala twin.

Run this file to write `tests/vectors/prefetch.json` from the Python form.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock.prefetch.controller import (
    CANDIDATES,
    Candidate,
    Controller,
    ControlTerms,
    OperatorBatch,
    Prefetches,
    Switch,
)

FILE = Path(__file__).parents[1] / "vectors" / "prefetch.json"
SLACK_US: dict[Candidate, int] = {"A": 400_000, "B": 90_000, "C": 30_000, "D": 400}
SLOW_US, QUICK_US = 50_000, 1_000
"""Access times that B covers as the latest, and that C does."""


def batch(number: int, **facts: Any) -> OperatorBatch:
    """A batch of 1,000 rows with slow reads, of which 10 missed."""
    usual = {"rows": 1_000, "misses": 10, "slack_us": SLACK_US, "access_us": {SLOW_US: 100}}
    return OperatorBatch(number, **{**usual, **facts})


def used(candidate: Candidate, count: int = 100, unused: int = 0) -> dict[Candidate, Prefetches]:
    return {candidate: Prefetches(count, unused)}


def batches(count: int, start: int = 0, **facts: Any) -> list[OperatorBatch]:
    return [batch(start + place, **facts) for place in range(count)]


class Scene(msgspec.Struct, frozen=True):
    """Candidates of an operator, terms, and the batches that its controller is told of.

    `offered` are other candidates that the plan has behind a batch, by the batch's number;
    `planned_again` those that it has when it is then made anew.
    """

    batches: list[OperatorBatch]
    candidates: tuple[Candidate, ...] = CANDIDATES
    terms: ControlTerms = ControlTerms()
    offered: dict[int, tuple[Candidate, ...]] = {}
    planned_again: dict[int, tuple[Candidate, ...]] = {}


SCENES: dict[str, Scene] = {
    "no batch": Scene([]),
    "no candidate": Scene(batches(7), candidates=()),
    "no read misses": Scene(batches(7, misses=0)),
    "misses that memory answers": Scene(batches(7, access_us={5: 99, 900: 1})),
    "the first candidate after the first misses": Scene([batch(0, misses=0), *batches(3, 1)]),
    "the latest in time after five batches": Scene(batches(8)),
    "none is in time: the earliest": Scene(batches(8, access_us={900_000: 10})),
    "exactly in time": Scene(batches(6, access_us={28_000: 10})),
    "a microsecond too late": Scene(batches(6, access_us={28_001: 10})),
    "reads that are one in a hundred do not count": Scene(
        batches(6, access_us={1_000: 99, 900_000: 1})
    ),
    "reads that are two in a hundred do": Scene(batches(6, access_us={1_000: 98, 900_000: 2})),
    "reads get faster: five batches to move": Scene(
        [*batches(6), *batches(6, 6, access_us={QUICK_US: 100})]
    ),
    "reads get slower: moved at once": Scene(
        [*batches(6, access_us={QUICK_US: 100}), *batches(3, 6)]
    ),
    "one short batch has less than one row in a hundred": Scene(
        [*batches(5), batch(5, rows=40, slack_us={"A": 0, "B": 0, "C": 0, "D": 0}), batch(6)]
    ),
    "one short batch has more": Scene(
        [*batches(5), batch(5, rows=41, slack_us={"A": 0, "B": 0, "C": 0, "D": 0}), batch(6)]
    ),
    "batches without rows are no evidence": Scene(
        [*batches(4), *batches(4, 4, rows=0, access_us={}, slack_us={}), *batches(2, 8)]
    ),
    "slack that nobody knows does not cover": Scene(batches(6, slack_us={"A": 400_000})),
    "no reads any more: nothing moves again": Scene(
        [batch(0), *batches(6, 1, misses=0, access_us={})]
    ),
    "one unused prefetch of a thousand discards": Scene(
        [batch(0), batch(1, prefetches=used("A", 999, 1)), *batches(6, 2, prefetches=used("B"))]
    ),
    "a tenth unused is allowed, and more is not": Scene(
        [batch(0), batch(1, prefetches=used("A", 90, 10)), batch(2, prefetches=used("A", 89, 11))],
        terms=ControlTerms(unused_percent_max=10),
    ),
    "unused ones are old after five batches": Scene(
        [
            batch(0),
            batch(1, prefetches=used("A", 95, 5)),
            *batches(4, 2, prefetches=used("A", 10)),
            batch(6, prefetches=used("A", 100, 9)),
        ],
        terms=ControlTerms(unused_percent_max=9),
    ),
    "C is discarded with all before it": Scene(
        [*batches(6, access_us={QUICK_US: 9}), *batches(3, 6, prefetches=used("C", 5, 5))]
    ),
    "D is discarded: nothing is left, for good": Scene(
        [batch(0), batch(1, prefetches=used("D", 1, 1)), *batches(6, 2, prefetches=used("D"))]
    ),
    "an operator without D": Scene(batches(7), candidates=("B", "C")),
    "a batch with a failed attempt is not judged": Scene(
        [batch(0), batch(1, prefetches=used("A", 9, 9), has_failed_attempts=True), batch(2)]
    ),
    "the plan loses the candidate that hints": Scene(
        batches(4), offered={1: ("B", "C", "D"), 3: ("C", "D")}
    ),
    "the plan loses the candidate in time": Scene(batches(8), offered={6: ("A", "C", "D")}),
    "the plan loses one that does not hint": Scene(batches(4), offered={2: ("A", "B", "D")}),
    "the plan loses D, and has it again": Scene(
        batches(4), offered={1: ("A", "B", "C"), 2: CANDIDATES}
    ),
    "the plan has no candidate for a batch": Scene(
        [*batches(3), *batches(3, 3, misses=0)], offered={2: (), 4: ("B", "C", "D")}
    ),
    "the plan has another candidate as one is discarded": Scene(
        [batch(0), batch(1, prefetches=used("A", 9, 1)), batch(2)], offered={1: ("A", "C", "D")}
    ),
    "other candidates before anything misses": Scene(
        [*batches(2, misses=0), batch(2)], offered={1: ("C", "D")}
    ),
    "a batch is planned again with other candidates": Scene(
        batches(3), planned_again={0: CANDIDATES, 1: ("C", "D"), 2: ()}
    ),
    "a static join drops rows, then reads get faster": Scene(
        [
            *batches(3, access_us={95_000: 50}, prefetches=used("A")),
            *batches(6, 3, access_us={95_000: 50}, prefetches=used("A", 70, 30)),
            *batches(7, 9, access_us={QUICK_US: 50}, prefetches=used("B")),
        ]
    ),
}


def answers(scene: Scene) -> list[dict[str, Any]]:
    """The candidates after each batch of a scene, and the reason of each switch."""
    controller = Controller(scene.candidates, scene.terms)
    given = []
    for facts in scene.batches:
        candidates = scene.offered.get(facts.batch, controller.candidates)
        controller, switch = controller.after(facts, candidates)
        given.append(_answer(controller, switch))
        if facts.batch in scene.planned_again:
            candidates = scene.planned_again[facts.batch]
            controller, switch = controller.offered(candidates, facts.batch)
            given.append(_answer(controller, switch))
    return given


def _answer(controller: Controller, switch: Switch | None) -> dict[str, Any]:
    return {
        "active": list(controller.active),
        "discarded": sorted(controller.discarded),
        "reason": None if switch is None else switch.reason,
    }


def described(name: str, scene: Scene) -> dict[str, Any]:
    """A scene as both forms must see it."""
    as_json: dict[str, Any] = json.loads(msgspec.json.encode(scene))
    return {"name": name, **as_json, "answers": answers(scene)}


def random_scene(seed: int) -> Scene:
    chance = random.Random(seed)
    candidates = tuple(each for each in CANDIDATES if chance.random() < 0.85)
    terms = ControlTerms(chance.choice([0, 0, 5, 20]), chance.choice([0, 2_000, 10_000]))
    history = [_random_batch(chance, number) for number in range(12)]
    return Scene(history, candidates, terms, _random_offers(chance), _random_offers(chance))


def _random_offers(chance: random.Random) -> dict[int, tuple[Candidate, ...]]:
    """Other candidates behind one batch in six."""
    return {
        number: tuple(each for each in CANDIDATES if chance.random() < 0.7)
        for number in range(12)
        if chance.random() < 1 / 6
    }


def _random_batch(chance: random.Random, number: int) -> OperatorBatch:
    least = sorted(chance.randint(0, 200_000) for _ in CANDIDATES)
    slack_us = dict(zip(reversed(CANDIDATES), least, strict=True))
    prefetches: dict[Candidate, Prefetches] = {
        each: Prefetches(
            chance.randint(0, 500),
            chance.choice([0] * 12 + [1, 30]),
        )
        for each in CANDIDATES
        if chance.random() < 0.7
    }
    access_us = {chance.choice([5, 300, 1_200, 30_000]): chance.randint(0, 90) for _ in range(2)}
    return OperatorBatch(
        number,
        chance.choice([0, 10, 1_000, 5_000]),
        chance.choice([0, 0, 3, 700]),
        prefetches,
        {each: us for each, us in slack_us.items() if chance.random() < 0.95},
        access_us,
        chance.random() < 0.1,
    )


def vectors() -> list[dict[str, Any]]:
    named = [described(name, scene) for name, scene in SCENES.items()]
    return named + [described(f"by chance, {seed}", random_scene(seed)) for seed in range(30)]


def reasons_of(scene: Scene) -> Sequence[str]:
    """Reasons of all switches of a scene, in order."""
    return [each["reason"] for each in answers(scene) if each["reason"] is not None]


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(each) for each in vectors())
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
