"""NEXMark Q13, bounded side input: every bid with the value its auction has in a fixed table.

Append, without state: the table has 10,000 rows i, "i", and a bid's key in it is its auction modulo
the number of rows. It is a static DataFrame, sent to every task; or, with `redis`, a remote store,
in which `penstock.enrich` looks the values up, under their keys with `SIDE_INPUT_PREFIX` before
them. Beam takes the bidder modulo 500; Flink looks the table up as of processing time, which makes
no difference for one that is fixed.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import penstock
from penstock_lab.queries.query import CACHE_BYTES, Frames, Query, Stage

SIDE_INPUT_ROWS = 10_000
SIDE_INPUT_PREFIX = "side_input:"
KEY = "side_input_key"
COLUMNS = ("auction", "bidder", "price", "date_time", "value", "sent_at")


def query(
    *,
    side_input_rows: int = SIDE_INPUT_ROWS,
    redis: str | None = None,
    cache: str = "timestamp",
    cache_bytes: int = CACHE_BYTES,
    ahead: bool = False,
) -> Query:
    """The query over a table of so many rows, in the Redis at `redis` if that is given.

    `cache` and `cache_bytes` are those of `penstock.enrich`; `ahead` reads bids that still wait in
    the log, for their values.
    """

    def joined(frames: Frames) -> DataFrame:
        bids = frames["bids"]
        side = bids.sparkSession.range(side_input_rows).select(
            f.col("id").alias("key"), f.col("id").cast("string").alias("value")
        )
        return bids.join(
            f.broadcast(side), f.col("auction") % side_input_rows == f.col("key")
        ).select(*COLUMNS)

    def looked_up(frames: Frames) -> DataFrame:
        bids = frames["bids"].select(
            *[name for name in COLUMNS if name != "value"],
            (f.col("auction") % side_input_rows).alias(KEY),
        )
        assert redis is not None
        return penstock.enrich(
            bids,
            penstock.Redis(redis, "value string", prefix=SIDE_INPUT_PREFIX),
            on=KEY,
            missing="error",
            cache=cache,
            cache_bytes=cache_bytes,
            time="date_time",
            ahead=ahead and penstock.Ahead(rows=partial(with_key, side_input_rows)),
            name="q13",
        ).select(*COLUMNS)

    columns = (
        "auction bigint, bidder bigint, price bigint, date_time timestamp, value string, "
        "sent_at timestamp"
    )
    build, lookup = (joined, None) if redis is None else (looked_up, "q13")
    stage = Stage("q13", ("bids",), columns, build, lookup=lookup)
    return Query("q13", "q13", (stage,), {"side_input_rows": side_input_rows})


def with_key(side_input_rows: int, bids: pa.RecordBatch) -> pa.RecordBatch:
    """Bids with the column that the query looks up, as they are read ahead."""
    auctions = bids.column("auction").to_numpy(zero_copy_only=False)
    return bids.append_column(KEY, pa.array(np.mod(auctions, side_input_rows)))
