"""NEXMark Q18, last bid: the latest bid of every bidder on every auction.

Updating by bidder and auction. The reference leaves open which of two bids in one millisecond is
the later; here it is the one with the smaller `extra`, as in RisingWave, then price, channel and
url. State grows with the pairs, because the query has no time in it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage

KEY = ("bidder", "auction")


def query() -> Query:
    columns = (
        "auction bigint, bidder bigint, price bigint, channel string, url string, "
        "date_time timestamp, extra string, sent_at timestamp"
    )
    return Query("q18", "q18", (Stage("q18", ("bids",), columns, _build, "update", KEY),))


def _build(frames: Frames) -> DataFrame:
    # The least of these is the latest bid, and the smallest of those in one instant.
    age = (-f.unix_micros("date_time")).alias("age")
    latest = f.min(f.struct(age, "extra", "price", "channel", "url", "date_time")).alias("latest")
    kept = frames["bids"].groupBy(*KEY).agg(latest, f.max("sent_at").alias("sent_at"))
    return kept.select(
        "auction",
        "bidder",
        "latest.price",
        "latest.channel",
        "latest.url",
        "latest.date_time",
        "latest.extra",
        "sent_at",
    )
