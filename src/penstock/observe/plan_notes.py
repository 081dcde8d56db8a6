"""Notes that the plug-in's rules leave on the plan of a running query."""

from __future__ import annotations

import msgspec


class PlanNote(msgspec.Struct, frozen=True):
    """The last note of one rule on one stateful operator."""

    rule: str
    """Name of the rule, such as "panes"."""
    operator: int
    """Id of the stateful operator, as in the query's progress and in its checkpoint."""
    text: str
    """How the rule has planned the operator, or why it was left to Spark."""
    since_batch: int
    """The first batch of this run of which the rule said so."""


def notes_in(notes_json: str | bytes) -> list[PlanNote]:
    """The notes in the plug-in's JSON, in its order."""
    return msgspec.json.decode(notes_json, type=list[PlanNote])
