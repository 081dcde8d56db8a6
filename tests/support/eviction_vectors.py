"""Histories of a store and what is known of its times after each, for Python and its Scala twin.

Run this file to write `tests/vectors/eviction.json` from the Python form.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from penstock.eviction.least_time import LeastTime

FILE = Path(__file__).parents[1] / "vectors" / "eviction.json"
NOON_US = 1_700_000_000_000_000
Event = tuple[str, int | None]

HISTORIES: dict[str, list[Event]] = {
    "an empty store skips every scan": [("opened", 1), ("ask", NOON_US)],
    "a store that was read from its checkpoint knows nothing": [("opened", 0), ("ask", 0)],
    "a row that was put holds a later watermark": [
        ("opened", 1), ("put", 50), ("put", 70), ("ask", 49), ("ask", 50), ("ask", 60),
    ],
    "a row without a time is never expired": [("opened", 1), ("put", None), ("ask", NOON_US)],
    "a scan teaches what stays": [
        ("opened", 0), ("begun", 20), ("read", 10), ("removed", None), ("read", 30),
        ("read", None), ("ended", None), ("ask", 29), ("ask", 30),
    ],
    "a scan that was cut off teaches nothing": [
        ("opened", 0), ("begun", 20), ("read", 30), ("ask", 10), ("begun", 25), ("read", 40),
        ("ended", None), ("ask", 35),
    ],
    "rows that were not removed keep the bound": [
        ("opened", 1), ("put", 10), ("begun", 20), ("read", 10), ("ended", None), ("ask", 9),
        ("ask", 10),
    ],
    "what is put during a scan counts": [
        ("opened", 0), ("begun", 20), ("put", 25), ("read", 40), ("ended", None), ("ask", 24),
        ("ask", 25),
    ],
    "an aborted task leaves nothing known": [
        ("opened", 1), ("put", 50), ("forgotten", None), ("ask", 10), ("put", 5), ("ask", 1),
    ],
    "a bound that was measured is exact until something is put": [
        ("opened", 0), ("measured", 40), ("ask", 39), ("ask", 40), ("put", 12), ("ask", 12),
    ],
}  # fmt: skip


def after(state: LeastTime, event: Event) -> LeastTime:
    """The state after an event; `ask` changes nothing."""
    name, value = event
    match name:
        case "opened":
            return state.opened(is_empty=bool(value))
        case "put":
            return state.put(value)
        case "read":
            return state.read(value)
        case "begun":
            return state.begun(value or 0)
        case "measured":
            return state.measured(value or 0)
        case "removed":
            return state.removed()
        case "ended":
            return state.ended()
        case "forgotten":
            return state.forgotten()
    return state


def answers(history: list[Event]) -> list[bool]:
    """Whether a scan may be skipped, for each `ask` of a history."""
    state, skips = LeastTime(), []
    for event in history:
        if event[0] == "ask":
            skips.append(state.may_skip(event[1] or 0))
        state = after(state, event)
    return skips


def random_history(seed: int) -> list[Event]:
    drawn = random.Random(seed)
    history: list[Event] = [("opened", drawn.randrange(2))]
    for _ in range(40):
        name = drawn.choice(
            ["put", "put", "put", "ask", "ask", "begun", "read", "read", "removed", "ended",
             "measured", "forgotten"]
        )  # fmt: skip
        without_value = name in ("removed", "ended", "forgotten")
        is_null = name in ("put", "read") and drawn.random() < 0.1
        history.append((name, None if without_value or is_null else drawn.randrange(-50, 50)))
    return history


def vectors() -> list[dict[str, Any]]:
    named = {
        **HISTORIES,
        **{f"drawn by chance, seed {seed}": random_history(seed) for seed in range(20)},
    }
    return [
        {"name": name, "events": [list(event) for event in history], "skips": answers(history)}
        for name, history in named.items()
    ]


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(vector) for vector in vectors())
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
