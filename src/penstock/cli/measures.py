"""Times and sizes as people write and read them: 90s, 7d, 10GB."""

from __future__ import annotations

import re
from typing import Any

import click

_TIMES = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZES |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


class Span(click.ParamType[int]):
    """A time such as 90s, 12h or 7d, in milliseconds; `ever` is 0, which is no bound."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+)(ms|s|m|h|d)", str(value))
        if value == "ever":
            return 0
        if match is None or int(match[1]) == 0:
            self.fail(
                f"{value!r} is not a time; give one such as 90s, 12h, 7d, or ever", param, ctx
            )
        return int(match[1]) * _TIMES[match[2]]


class Seconds(click.ParamType[float]):
    """A time above 0 such as 500ms, 1.5s or 10m, in seconds; a bare number is seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", str(value))
        if match is None or float(match[1]) == 0:
            self.fail(f"{value!r} is not a time above 0 such as 500ms, 30s, 10m or 1h", param, ctx)
        return float(match[1]) * _TIMES[match[2] or "s"] / 1000


SECONDS = Seconds()


class Size(click.ParamType[int]):
    """A size such as 500MB or 10GiB, in bytes; `all` is 0, which is no bound."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+) ?([A-Za-z]*)", str(value))
        if value == "all":
            return 0
        if match is None or match[2].upper() not in _SIZES or int(match[1]) == 0:
            self.fail(f"{value!r} is not a size; give 500MB, 10GiB, all, or the like", param, ctx)
        return int(match[1]) * _SIZES[match[2].upper()]


def age(milliseconds: int) -> str:
    """A time in its largest unit that fits, rounded down."""
    for unit in ("d", "h", "m", "s"):
        if milliseconds >= _TIMES[unit]:
            return f"{milliseconds // _TIMES[unit]} {unit}"
    return "a moment"
