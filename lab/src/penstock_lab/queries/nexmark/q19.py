"""NEXMark Q19, top ten: the ten highest bids of every auction, with their rank.

Updating by auction and rank: one new bid may move all ten. An ordered top-k, `max_by` with k. Of
equal prices the later bid ranks higher, then the greater `extra`, bidder, channel and url; the
reference leaves it open. State grows with the auctions, ten bids each, because the query has no
time in it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage

RANKS = 10


def query() -> Query:
    columns = (
        "auction bigint, bidder bigint, price bigint, channel string, url string, "
        "date_time timestamp, extra string, rank bigint, sent_at timestamp"
    )
    stage = Stage("q19", ("bids",), columns, _build, "update", ("auction", "rank"))
    return Query("q19", "q19", (stage,))


def _build(frames: Frames) -> DataFrame:
    bid = f.struct("price", "date_time", "extra", "bidder", "channel", "url")
    top = (
        frames["bids"]
        .groupBy("auction")
        .agg(f.max_by(bid, bid, RANKS).alias("top"), f.max("sent_at").alias("sent_at"))
    )
    ranked = top.select("auction", f.posexplode("top").alias("place", "bid"), "sent_at")
    return ranked.select(
        "auction",
        "bid.bidder",
        "bid.price",
        "bid.channel",
        "bid.url",
        "bid.date_time",
        "bid.extra",
        (f.col("place") + 1).cast("bigint").alias("rank"),
        "sent_at",
    )
