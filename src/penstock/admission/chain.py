"""Chains of queries: an end-to-end deadline divided over its stages by what each costs.

A stage with `deadline.from=origin` counts from the first arrival of the rows that its input was
made from. If others of its kind read its output, it must leave them time: of the deadline at the
end of a chain a stage may use the part that the costs up to and with its own have in all costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

STAGES_MAX = 16


class Stage(msgspec.Struct, frozen=True):
    """One query of a chain: the streams it reads and writes, and its usual time of a batch."""

    query: str
    reads: frozenset[str]
    writes: frozenset[str]
    cost_ms: float
    deadline_ms: float | None
    is_from_origin: bool


def chain_deadlines(stages: Iterable[Stage]) -> dict[str, float]:
    """The part of its chains' deadlines that each stage in front of another may use, by query."""
    counted = [stage for stage in stages if stage.is_from_origin]
    deadlines = {}
    for stage in counted:
        before_ms = _longest_before_ms(stage, counted, frozenset({stage.query}))
        used_ms = before_ms + max(stage.cost_ms, 1.0)
        parts = [
            end.deadline_ms * used_ms / (used_ms + after_ms)
            for end, after_ms in _ends_after(stage, counted, frozenset({stage.query}))
            if end.deadline_ms is not None
        ]
        if parts:
            deadlines[stage.query] = min(parts)
    return deadlines


def _longest_before_ms(stage: Stage, stages: list[Stage], passed: frozenset[str]) -> float:
    """The longest cost on a way from the beginning of a chain to a stage; a circle ends there."""
    if len(passed) > STAGES_MAX:
        return 0.0
    ways = [
        max(before.cost_ms, 1.0) + _longest_before_ms(before, stages, passed | {before.query})
        for before in stages
        if before.query not in passed and before.writes & stage.reads
    ]
    return max(ways, default=0.0)


def _ends_after(
    stage: Stage, stages: list[Stage], passed: frozenset[str]
) -> Iterator[tuple[Stage, float]]:
    """Every stage that can be reached from a stage, and the cost on the way, with its own."""
    if len(passed) > STAGES_MAX:
        return
    for after in stages:
        if after.query not in passed and stage.writes & after.reads:
            cost_ms = max(after.cost_ms, 1.0)
            yield after, cost_ms
            for end, further_ms in _ends_after(after, stages, passed | {after.query}):
                yield end, cost_ms + further_ms
