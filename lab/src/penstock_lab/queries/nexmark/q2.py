"""NEXMark Q2, selection: auction and price of the bids on some auctions.

Append, without state. The auctions are every 123rd, as in the Flink version, or those listed:
the original query and RisingWave's name five.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage

EVERY = 123


def query(*, auctions: Sequence[int] | None = None) -> Query:
    """`auctions` are the ids to keep; every 123rd if none are given."""

    def build(frames: Frames) -> DataFrame:
        auction = f.col("auction")
        kept = auction % EVERY == 0 if auctions is None else auction.isin(list(auctions))
        return frames["bids"].where(kept).select("auction", "price", "sent_at")

    stage = Stage("q2", ("bids",), "auction bigint, price bigint, sent_at timestamp", build)
    return Query("q2", "q2", (stage,), {"auctions": auctions})
