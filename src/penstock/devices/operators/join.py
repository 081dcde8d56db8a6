"""Hash join of rows with a table that does not change while a query runs."""

from __future__ import annotations

from typing import Literal as Choice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.devices.operators.comparison import normalized
from penstock.devices.operators.evaluate import column
from penstock.devices.operators.expressions import Expression
from penstock.devices.operators.rows import Rows

ROW, MATCH = "row", "match"


def join(
    keys: tuple[Expression, ...],
    table: Rows,
    table_keys: tuple[Expression, ...],
    rows: Rows,
    how: Choice["inner", "left"] = "inner",
) -> Rows:
    """Rows with the columns of the table's rows of the same keys after their own, in their order.

    A row with a null among its keys matches nothing. A `left` join keeps rows without a match, with
    nulls for the table's columns.
    """
    names = [f"k{place}" for place in range(len(keys))]
    left = _keyed(keys, rows, names, ROW)
    right = _keyed(table_keys, table, names, MATCH)
    joined = left.join(right, names, join_type="left outer", use_threads=False).select([ROW, MATCH])
    if how == "inner":
        joined = joined.filter(pc.is_valid(joined.column(MATCH)))
    joined = joined.sort_by([(ROW, "ascending"), (MATCH, "ascending")]).combine_chunks()
    places, matches = (_whole(joined.column(name)) for name in (ROW, MATCH))
    taken, matched = rows.taken(places), table.taken(matches)
    return Rows((*taken.columns, *matched.columns), len(places))


def _keyed(keys: tuple[Expression, ...], rows: Rows, names: list[str], number: str) -> pa.Table:
    """The keys of rows with the number of each row."""
    columns = [column(key, rows) for key in keys]
    # Not a number and both zeros are keys like others.
    whole = [normalized(each) if pa.types.is_floating(each.type) else each for each in columns]
    numbers = pa.array(np.arange(rows.count))
    return pa.table([*whole, numbers], [*names, number])


def _whole(chunks: pa.ChunkedArray) -> pa.Array:
    return chunks.combine_chunks() if chunks.num_chunks != 1 else chunks.chunk(0)
