"""Expansion: every row once per projection, as Spark's Expand does for windows and rollups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.devices.operators.evaluate import column
from penstock.devices.operators.expressions import Expression
from penstock.devices.operators.rows import Rows


def expand(projections: tuple[tuple[Expression, ...], ...], rows: Rows) -> Rows:
    """All copies of the first row, then all of the second, and so on."""
    number = len(projections)
    repeated = pa.array(np.repeat(np.arange(rows.count), number), pa.int64())
    # Copy c of row r stands at c * count + r when the copies follow each other.
    order = np.arange(rows.count * number).reshape(number, rows.count).T.ravel()
    places = pa.array(order, pa.int64())

    def copies(expressions: tuple[Expression, ...]) -> pa.Array:
        if len(set(expressions)) == 1:
            return column(expressions[0], rows).take(repeated)
        return pa.concat_arrays([column(each, rows) for each in expressions]).take(places)

    return Rows(tuple(map(copies, zip(*projections, strict=True))), rows.count * number)
