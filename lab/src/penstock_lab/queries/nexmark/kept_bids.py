"""Kept bids: the number of bids on every auction, of those bidders that a fixed table has.

Not of NEXMark: made to see hints lose their accuracy. The table is a static DataFrame, so a hint
from below the join does not know which rows it will drop; it has every bidder but one. It is made
of two ranges: of a filter Spark would make one on the bids too, and hints would know. Updating by
auction; state grows with the auctions, because the query has no time in it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage

BIDDERS = 200_000


def query(*, dropped_bidder: int = 0, bidders: int = BIDDERS) -> Query:
    def build(frames: Frames) -> DataFrame:
        bids = frames["bids"]
        spark = bids.sparkSession
        below = spark.range(min(dropped_bidder, bidders))
        above = spark.range(min(dropped_bidder + 1, bidders), bidders)
        kept = below.union(above).withColumnRenamed("id", "kept_bidder")
        return (
            bids.join(f.broadcast(kept), f.col("bidder") == f.col("kept_bidder"))
            .groupBy("auction")
            .agg(f.count("*").alias("bids"), f.max("sent_at").alias("sent_at"))
        )

    columns = "auction bigint, bids bigint, sent_at timestamp"
    stage = Stage("kept_bids", ("bids",), columns, build, "update", ("auction",))
    parameters = {"dropped_bidder": dropped_bidder, "bidders": bidders}
    return Query("kept_bids", "kept_bids", (stage,), parameters)
