"""Fills the store that queries look campaigns and the side input up in."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from penstock.errors import TryAgain
from penstock_lab.queries.nexmark.q13 import SIDE_INPUT_PREFIX, SIDE_INPUT_ROWS
from penstock_lab.workloads.ads import Ads, AdsOptions
from penstock_lab.workloads.nexmark import side_input

KEYS_AT_ONCE = 50_000


def fill(url: str, seed: int, options: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Put every ad with its campaign; what was under those keys is replaced.

    `options` are those of the generator that the rows come from.
    """
    _put(url, "campaigns", Ads(AdsOptions(**options), seed).campaigns(), "")


def fill_side_input(url: str, rows: int = SIDE_INPUT_ROWS) -> None:
    """Put the table that Q13 looks values up in."""
    _put(url, "side input", side_input(rows), SIDE_INPUT_PREFIX)


def _put(url: str, subject: str, table: pa.RecordBatch, prefix: str) -> None:
    """Put a table's second column under its first."""
    # An optional dependency, and asked for before this is called.
    import redis

    store = redis.Redis.from_url(url)
    try:
        for begin in range(0, table.num_rows, KEYS_AT_ONCE):
            piece = table.slice(begin, KEYS_AT_ONCE)
            keys, values = (column.to_pylist() for column in piece.columns)
            store.mset({f"{prefix}{key}": value for key, value in zip(keys, values, strict=True)})
    except redis.RedisError as error:
        raise TryAgain(
            f"the {subject} could not be put into Redis at {url}: {error}", code="redis_failed"
        ) from error
    finally:
        store.close()
