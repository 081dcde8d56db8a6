"""Expansion: every row once per projection, as Spark's Expand does for windows and rollups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.devices.operators.evaluate import column
from penstock.devices.operators.expressions import Expression
from penstock.devices.operators.rows import Rows


def expand(projections: tuple[tuple[Expression, ...], ...], rows: Rows) -> Rows:
    """All copies of the first row, then all of the second, and so on."""
    copies = [[column(each, rows) for each in projection] for projection in projections]
    number = len(projections)
    # Copy c of row r stands at c * count + r when the copies follow each other.
    order = np.arange(rows.count * number).reshape(number, rows.count).T.ravel()
    places = pa.array(order, pa.int64())
    columns = tuple(
        pa.concat_arrays([copy[place] for copy in copies]).take(places)
        for place in range(len(copies[0]))
    )
    return Rows(columns, rows.count * number)
