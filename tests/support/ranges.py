"""What every generator's tests ask: is a range the same however it is cut, and is it as it was?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pyarrow as pa
from hypothesis import strategies as st

Events = Callable[[int, int], pa.RecordBatch]

SEEDS = st.integers(0, 2**64)
FIRSTS = st.integers(0, 10**10)
COUNTS = st.integers(0, 300)


def cut_in_two(events: Events, first: int, count: int, at: int) -> pa.Table:
    """The range asked for in two pieces, the second one first."""
    at = min(at, count)
    tail = events(first + at, count - at)
    return pa.Table.from_batches([events(first, at), tail]).combine_chunks()


def whole(events: Events, first: int, count: int) -> pa.Table:
    return pa.Table.from_batches([events(first, count)])


def fingerprint(rows: pa.RecordBatch) -> str:
    """A short digest of all values; a change of it means that old files cannot be made again."""
    columns = [
        (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        for column in rows.columns
    ]
    return hashlib.blake2b(repr(columns).encode(), digest_size=6).hexdigest()


def column(rows: pa.RecordBatch, name: str) -> list[object]:
    values: list[object] = rows.column(name).to_pylist()
    return values
