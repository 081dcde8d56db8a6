"""Rows between operations: equally long Arrow columns, known by their places."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = "pa.Array | pa.Scalar"
"""What an expression yields: a value for each row, or one for all of them."""


@dataclass(frozen=True)
class Rows:
    """Columns of `count` values each; there may be no column at all."""

    columns: tuple[pa.Array, ...]
    count: int

    @property
    def size_bytes(self) -> int:
        """The bytes of all values, without what their buffers hold beside them."""
        return sum(column.nbytes for column in self.columns)

    def taken(self, places: Numbers | pa.Array) -> Rows:
        """The rows at these places, in their order."""
        indices = places if isinstance(places, pa.Array) else pa.array(places, pa.int64())
        return Rows(tuple(column.take(indices) for column in self.columns), len(indices))

    def filtered(self, mask: pa.Array, needed: Collection[int] | None = None) -> Rows:
        """The rows where the mask is true; false and null drop a row. Of columns that nobody needs
        nothing is taken: they are null. Where all rows are kept nothing is copied."""
        count = int(mask.true_count)
        if count == self.count:
            return self
        kept = (
            column.filter(mask) if needed is None or place in needed else pa.nulls(count)
            for place, column in enumerate(self.columns)
        )
        return Rows(tuple(kept), count)


def rows_of(batches: Sequence[pa.RecordBatch]) -> Rows:
    """One piece of the rows of several record batches, all of the same columns."""
    if len(batches) == 1:
        return Rows(tuple(batches[0].columns), batches[0].num_rows)
    columns = tuple(
        pa.concat_arrays([batch.column(place) for batch in batches])
        for place in range(batches[0].num_columns)
    )
    return Rows(columns, sum(batch.num_rows for batch in batches))


def column_of(value: Value, count: int) -> pa.Array:
    """The column of an expression's value: one that is the same in all rows is repeated."""
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, count)
    return value


def scattered(pieces: Iterable[tuple[Numbers, pa.Array]]) -> pa.Array:
    """One column of pieces that each hold the values of some rows, all rows once."""
    places, values = zip(*pieces, strict=True)
    order = np.empty(sum(map(len, places)), np.int64)
    order[np.concatenate(places)] = np.arange(len(order))
    return pa.concat_arrays(values).take(pa.array(order))
