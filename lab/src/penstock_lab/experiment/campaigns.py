"""Fills the stores that queries look values up in: campaigns for ysb, the side input for Q13."""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import TryAgain
from penstock_lab.queries.nexmark.q13 import SIDE_INPUT_PREFIX, SIDE_INPUT_ROWS
from penstock_lab.workloads.ads import Ads
from penstock_lab.workloads.nexmark import side_input


def fill(url: str, seed: int) -> None:
    """Put every ad with its campaign, in one request; what was under those keys is replaced."""
    _put(url, "campaigns", Ads(seed=seed).campaigns(), "")


def fill_side_input(url: str, rows: int = SIDE_INPUT_ROWS) -> None:
    """Put the table that Q13 looks values up in, in one request."""
    _put(url, "side input", side_input(rows), SIDE_INPUT_PREFIX)


def _put(url: str, subject: str, table: pa.RecordBatch, prefix: str) -> None:
    """Put a table's second column under its first."""
    # An optional dependency, and asked for before this is called.
    import redis

    keys, values = (column.to_pylist() for column in table.columns)
    store = redis.Redis.from_url(url)
    try:
        store.mset({f"{prefix}{key}": value for key, value in zip(keys, values, strict=True)})
    except redis.RedisError as error:
        raise TryAgain(
            f"the {subject} could not be put into Redis at {url}: {error}", code="redis_failed"
        ) from error
    finally:
        store.close()
