"""Hash join on a device of rows with a table that does not change while a query runs.

Keys of both sides are grouped together, by the same hash table that groups rows for aggregates; the
table's rows of a group then stand behind each other.
"""

from __future__ import annotations

from typing import Literal as Choice

import numpy as np

from penstock.devices.gpu.backend import Array, Backend
from penstock.devices.gpu.columns import DeviceColumn, DeviceRows, nulls, shared_validity
from penstock.devices.gpu.comparison import ordinals
from penstock.devices.gpu.evaluate import column
from penstock.devices.gpu.grouping import groups_of
from penstock.devices.gpu.texts import shared
from penstock.devices.operators.expressions import Expression


def join(
    keys: tuple[Expression, ...],
    table: DeviceRows,
    table_keys: tuple[Expression, ...],
    rows: DeviceRows,
    how: Choice["inner", "left"] = "inner",
) -> DeviceRows:
    """Rows with the columns of the table's rows of the same keys after their own, in their order.

    A row with a null among its keys matches nothing. A `left` join keeps rows without a match, with
    nulls for the table's columns.
    """
    backend, xp = rows.backend, rows.backend.xp
    row_keys = [column(key, rows) for key in keys]
    static_keys = [column(key, table) for key in table_keys]
    is_keyed, is_static_keyed = shared_validity(row_keys), shared_validity(static_keys)
    if is_static_keyed is not None:
        table = table.filtered(is_static_keyed)
        static_keys = [column(key, table) for key in table_keys]
    groups = groups_of(_words(static_keys, row_keys, backend), backend)
    static_ids, row_ids = groups.ids[: table.count], groups.ids[table.count :]
    sizes = backend.sums(xp.ones(table.count, dtype=np.int64), static_ids, groups.count)
    matches = sizes[row_ids]
    if is_keyed is not None:
        matches = xp.where(is_keyed, matches, np.int64(0))
    copies = xp.maximum(matches, np.int64(1)) if how == "left" else matches
    places, turn = _repeated(copies, backend)
    taken = rows.taken(places)
    if not table.count:
        empty = tuple(nulls(each.type, taken.count, backend) for each in table.columns)
        return DeviceRows(backend, (*taken.columns, *empty), taken.count)
    starts = xp.cumsum(sizes) - sizes
    has_match = matches[places] > 0
    at = xp.where(has_match, starts[row_ids[places]] + turn, np.int64(0))
    matched = table.taken(backend.stable_order(static_ids)[at]).columns
    if how == "left":
        matched = tuple(each.where(has_match) for each in matched)
    return DeviceRows(backend, (*taken.columns, *matched), taken.count)


def _words(
    static_keys: list[DeviceColumn], row_keys: list[DeviceColumn], backend: Backend
) -> Array:
    """The keys of the table's rows and of the others after them, as lines of 64-bit numbers."""
    xp = backend.xp
    lines = []
    for pair in zip(static_keys, row_keys, strict=True):
        numbers = [
            ordinals(key, backend).astype(np.int64, copy=False) for key in shared(pair, backend)
        ]
        lines.append(xp.concatenate(numbers))
    return xp.stack(lines)


def _repeated(copies: Array, backend: Backend) -> tuple[Array, Array]:
    """The place of each row as often as it is copied, and the number of the copy from zero on."""
    xp = backend.xp
    ends = xp.cumsum(copies)
    total = int(ends[-1]) if len(ends) else 0
    copy = xp.arange(total)
    places = xp.searchsorted(ends, copy, side="right")
    return places, copy - (ends - copies)[places]
