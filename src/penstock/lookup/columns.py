"""Record batches to keys, and rows from a store to columns; each key of a batch once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import BadCall
from penstock.lookup.store import Key, Row
from penstock.lookup.values import column_of

US_PER_MS = 1_000


@dataclass(frozen=True)
class KeyedBatch:
    """The keys of a record batch, which of them each row has, and when each is of, at the latest.

    A row whose key is null has null for its place.
    """

    keys: list[Key]
    places: pa.Array
    times_ms: list[int]


def keyed(batch: pa.RecordBatch, on: str, time: str | None, now_ms: int) -> KeyedBatch:
    """The keys in the column `on`, by event time in the column `time`, else by `now_ms`."""
    column = batch.column(on)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    keys = encoded.dictionary.to_pylist()
    times = [now_ms] * len(keys)
    if time is not None and keys:
        times = _latest_ms(encoded.indices, batch.column(time), len(keys), now_ms)
    return KeyedBatch(keys, encoded.indices, times)


def with_columns(
    batch: pa.RecordBatch,
    keyed_batch: KeyedBatch,
    rows: Sequence[Row | None],
    is_kept: Sequence[bool],
    columns: pa.Schema,
    where: str,
) -> pa.RecordBatch:
    """The batch with the rows' columns behind its own, without rows whose key is not kept.

    A null key has null columns; whether such rows stay is seen to by `without_null_keys`.
    """
    added = [
        column_of(field, keyed_batch.keys, rows, place, where).take(keyed_batch.places)
        for place, field in enumerate(columns)
    ]
    whole = pa.RecordBatch.from_arrays(
        [*batch.columns, *added], names=[*batch.schema.names, *columns.names]
    )
    if all(is_kept):
        return whole
    kept = pc.fill_null(pa.array(is_kept, pa.bool_()).take(keyed_batch.places), True)
    return whole.filter(kept)


def without_null_keys(batch: pa.RecordBatch, on: str) -> pa.RecordBatch:
    return batch.filter(pc.is_valid(batch.column(on)))


def check_key_type(kind: pa.DataType, on: str) -> None:
    """Refuse a type whose values have no one text."""
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    ):
        raise BadCall(
            f"the key column {on} is of type {kind}; look-ups take strings, integers and binaries: "
            "cast it first",
            code="bad_enrich",
        )


def check_time_type(kind: pa.DataType, time: str) -> None:
    if not pa.types.is_timestamp(kind):
        raise BadCall(
            f"the column {time} is of type {kind}, and time is a timestamp; leave it out, or name "
            "another",
            code="bad_enrich",
        )


def _latest_ms(places: pa.Array, times: pa.Array, keys: int, now_ms: int) -> list[int]:
    """The latest time of each key's rows; `now_ms` for one whose times are all null."""
    known = pc.and_(pc.is_valid(places), pc.is_valid(times))
    us = times.filter(known).cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
    latest: np.ndarray[Any, Any] = np.full(keys, np.iinfo(np.int64).min)
    np.maximum.at(latest, places.filter(known).to_numpy(), us.to_numpy() // US_PER_MS)
    return [now_ms if at == np.iinfo(np.int64).min else at for at in latest.tolist()]
