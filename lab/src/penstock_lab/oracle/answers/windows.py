"""Window sizes of a query, for SQL."""

from __future__ import annotations

from penstock_lab.queries import Query

SECOND_US = 1_000_000


def whole(query: Query, name: str) -> int:
    value = query.parameters[name]
    assert isinstance(value, int)
    return value


def sizes_us(query: Query) -> tuple[int, int]:
    """Range and slide, in microseconds."""
    return whole(query, "range_s") * SECOND_US, whole(query, "slide_s") * SECOND_US
