"""Notes of the plug-in's rules on the wire: how operators are planned, told with a question and
shown by explain. As of reports, keys that this version does not know are passed over."""

from __future__ import annotations

from typing import Annotated

import msgspec

from penstock.model.numbers import Number

NOTES_MAX = 200
"""Of one query; of more, the oldest are forgotten."""


class PlanNoteBody(msgspec.Struct, frozen=True):
    """A note of one rule on one stateful operator, and the first batch of the run with it."""

    rule: Annotated[str, msgspec.Meta(max_length=100)]
    operator: Number
    text: Annotated[str, msgspec.Meta(max_length=1_000)]
    since_batch: Number
