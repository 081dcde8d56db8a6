"""Durations as people write them: 800ms, 2s, 1.5 minutes."""

from __future__ import annotations

import re

from penstock.errors import BadCall

_UNITS_MS = {
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1.0),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000.0),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000.0),
    **dict.fromkeys(("d", "day", "days"), 86_400_000.0),
}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)")


def parse_duration(text: str, subject: str = "duration") -> float:
    """The milliseconds of a duration above 0; `subject` names it in the refusal of another text."""
    match = _DURATION.fullmatch(text.strip().lower())
    milliseconds = 0.0
    if match is not None and match[2] in _UNITS_MS:
        milliseconds = float(match[1]) * _UNITS_MS[match[2]]
    if milliseconds <= 0.0:
        raise BadCall(
            f"the {subject} '{text}' is not a time above 0; write a number and its unit, such as "
            "'800ms', '2s' or '1.5 minutes'",
            code="bad_duration",
        )
    return milliseconds
