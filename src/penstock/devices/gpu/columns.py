"""Columns on a device: numbers, a mask of those that are known, and for texts a dictionary.

Texts are codes of a dictionary that stays on the host. Groups, joins and comparisons for equality
need no more than codes, a function of a text is computed once for each text of the dictionary, and
nothing of variable length has to be moved or put together on the device. Decimals of at most 18
digits are numbers of their smallest units. Sums of decimals, which have more digits, are pairs of
64-bit words and only go back to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.devices.gpu.backend import Array, Backend

UNSCALED_DIGITS_MAX = 18
NO_TEXTS = pa.array([""])
"""The dictionary of a column without a text: codes of nulls are zero and must name something."""
DECIMAL_BYTES, OFFSET_BYTES = 16, 4


@dataclass(frozen=True)
class DeviceColumn:
    """A column of one of Arrow's types. `valid` is None if no value is null; under a null the value
    is any of its type."""

    type: pa.DataType
    values: Array
    valid: Array | None = None
    dictionary: pa.Array | None = None

    def taken(self, places: Array) -> DeviceColumn:
        """The values at these places."""
        valid = None if self.valid is None else self.valid[places]
        return replace(self, values=self.values[places], valid=valid)

    def where(self, mask: Array) -> DeviceColumn:
        """The column with nulls where the mask is false."""
        return replace(self, valid=mask if self.valid is None else self.valid & mask)

    @property
    def texts(self) -> pa.Array:
        """The dictionary of a column of texts."""
        return NO_TEXTS if self.dictionary is None else self.dictionary

    @property
    def arrow_bytes(self) -> int:
        """The bytes that the column would have as an Arrow column, texts by the mean of theirs."""
        count = len(self.values)
        masks = 0 if self.valid is None else -(-count // 8)
        if self.dictionary is not None:
            text_bytes = int(self.dictionary.nbytes) // max(len(self.dictionary), 1)
            return masks + count * (OFFSET_BYTES + text_bytes)
        if pa.types.is_decimal(self.type):
            return masks + count * DECIMAL_BYTES
        if pa.types.is_boolean(self.type):
            return masks + -(-count // 8)
        return masks + int(self.values.nbytes)


@dataclass(frozen=True)
class DeviceRows:
    """Columns of `count` values each, on one device."""

    backend: Backend
    columns: tuple[DeviceColumn, ...]
    count: int

    def taken(self, places: Array) -> DeviceRows:
        """The rows at these places, in their order."""
        columns = tuple(column.taken(places) for column in self.columns)
        return replace(self, columns=columns, count=len(places))

    def filtered(self, mask: Array) -> DeviceRows:
        """The rows where the mask is true."""
        return self.taken(self.backend.xp.flatnonzero(mask))

    @property
    def arrow_bytes(self) -> int:
        return sum(column.arrow_bytes for column in self.columns)


def dtype_of(kind: pa.DataType) -> np.dtype[Any]:
    """The type of the numbers that values of a type are on the device."""
    if pa.types.is_string(kind):
        return np.dtype(np.int32)
    if pa.types.is_timestamp(kind) or pa.types.is_decimal(kind):
        return np.dtype(np.int64)
    if pa.types.is_date(kind):
        return np.dtype(np.int32)
    dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
    return dtype


def shared_validity(columns: Sequence[DeviceColumn]) -> Array | None:
    """The mask of rows in which all columns are known; None for all rows."""
    masks = [column.valid for column in columns if column.valid is not None]
    if not masks:
        return None
    mask = masks[0]
    for other in masks[1:]:
        mask = mask & other
    return mask


def validity(column: DeviceColumn, backend: Backend) -> Array:
    """The mask of a column's known values, also where all are."""
    if column.valid is not None:
        return column.valid
    return backend.xp.ones(len(column.values), dtype=bool)


def is_true(column: DeviceColumn) -> Array:
    """The mask of a condition: true where it is, false for false and null."""
    return column.values if column.valid is None else column.values & column.valid


def nulls(kind: pa.DataType, count: int, backend: Backend) -> DeviceColumn:
    """A column of nulls."""
    xp = backend.xp
    texts = NO_TEXTS if pa.types.is_string(kind) else None
    values = xp.zeros(count, dtype=dtype_of(kind))
    return DeviceColumn(kind, values, xp.zeros(count, dtype=bool), texts)
