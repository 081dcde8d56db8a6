"""Sorting on a device and the first rows of an order, with Spark's places for null and NaN."""

from __future__ import annotations

import numpy as np

from penstock.devices.gpu.backend import Array
from penstock.devices.gpu.columns import DeviceRows
from penstock.devices.gpu.comparison import ordinals
from penstock.devices.gpu.evaluate import column
from penstock.devices.gpu.texts import ordered
from penstock.devices.operators.order import SortKey


def sort(keys: tuple[SortKey, ...], rows: DeviceRows) -> DeviceRows:
    """The rows in order; equal ones stay as they were."""
    return rows.taken(_order(keys, rows))


def top(keys: tuple[SortKey, ...], count: int, rows: DeviceRows) -> DeviceRows:
    """The first so many rows of the order. All rows are sorted: CuPy has nothing quicker."""
    return rows.taken(_order(keys, rows)[:count])


def _order(keys: tuple[SortKey, ...], rows: DeviceRows) -> Array:
    """The places of rows in order: sorted by the last key first, and never out of place again."""
    backend = rows.backend
    order = backend.xp.arange(rows.count)
    for numbers in reversed([line for key in keys for line in _lines(key, rows)]):
        order = order[backend.stable_order(numbers[order])]
    return order


def _lines(key: SortKey, rows: DeviceRows) -> list[Array]:
    """The numbers to sort by for a key, which comes first in ascending order."""
    backend, xp = rows.backend, rows.backend.xp
    values = ordered(column(key.expression, rows), backend)
    numbers = ordinals(values, backend)
    if key.is_descending:
        numbers = ~numbers
    if values.valid is None:
        return [numbers]
    is_last = values.valid if key.puts_nulls_first else ~values.valid
    zero = numbers.dtype.type(0)
    return [is_last.astype(np.int8), xp.where(values.valid, numbers, zero)]
