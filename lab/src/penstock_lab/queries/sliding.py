"""Names and parameters of queries that are one text with many windows."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.errors import BadCall
from penstock_lab.queries.query import seconds

DELAY_S = 1
"""Reports and task events come in order of their seconds, so a second is late enough."""


def variant(family: str, range_s: int, slide_s: int) -> str:
    """The query's name: `lr_join_30_5`, or `lr_join_30_tumbling` where windows do not overlap."""
    if not 0 < slide_s <= range_s:
        raise BadCall(
            f"windows of {range_s} s cannot slide by {slide_s} s; give 1 up to the range",
            code="bad_request",
        )
    return f"{family}_{range_s}_{'tumbling' if slide_s == range_s else slide_s}"


def window(column: str, range_s: int, slide_s: int) -> Column:
    return f.window(column, seconds(range_s), seconds(slide_s))


def exact(column: str, decimals: int) -> Column:
    """A small float as a decimal: sums then do not depend on the order in which parts met.

    Eight digits, because Spark then sums in a long.
    """
    return f.col(column).cast(f"decimal(8,{decimals})")
