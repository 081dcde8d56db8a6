"""NEXMark Q20, expand bid: every bid on an auction of category 10, with the auction.

Append: one row per bid, whichever came first. State is unbounded on both sides, because the query
has no time in it: a bid may come long after its auction, or before it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage

CATEGORY = 10


def query() -> Query:
    columns = (
        "auction bigint, bidder bigint, price bigint, channel string, url string, "
        "bid_date_time timestamp, bid_extra string, item_name string, description string, "
        "initial_bid bigint, reserve bigint, auction_date_time timestamp, expires timestamp, "
        "seller bigint, category bigint, auction_extra string, sent_at timestamp"
    )
    return Query("q20", "q20", (Stage("q20", ("bids", "auctions"), columns, _build),))


def _build(frames: Frames) -> DataFrame:
    bids = frames["bids"].withColumnsRenamed({"date_time": "bid_date_time", "extra": "bid_extra"})
    auctions = (
        frames["auctions"]
        .where(f.col("category") == CATEGORY)
        .withColumnsRenamed(
            {"date_time": "auction_date_time", "extra": "auction_extra", "sent_at": "opened_at"}
        )
    )
    return (
        bids.join(auctions, f.col("auction") == f.col("id"))
        .withColumn("sent_at", f.greatest("sent_at", "opened_at"))
        .select(
            *("auction", "bidder", "price", "channel", "url", "bid_date_time", "bid_extra"),
            *("item_name", "description", "initial_bid", "reserve", "auction_date_time"),
            *("expires", "seller", "category", "auction_extra", "sent_at"),
        )
    )
